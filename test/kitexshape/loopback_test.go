package kitexshape_test

import (
	"context"
	"errors"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// loopback is a server and a client without a network: it writes and reads everything.
type loopback struct{ implementation any }

func (l *loopback) RegisterService(_ *fulmar.ServiceDesc, implementation any) {
	l.implementation = implementation
}

func (l *loopback) Call(ctx context.Context, method *fulmar.MethodDesc, request, reply any, _ ...fulmar.CallOption) error {
	received := method.NewRequest()
	if err := transfer(request, received); err != nil {
		return err
	}
	answer, err := method.Invoke(ctx, l.implementation, received)
	if err != nil && method.Exception != nil {
		if exception := method.Exception(err); exception != nil {
			answer, err = exception, nil
		}
	}
	if err != nil || method.Oneway {
		return err
	}
	if answer == nil {
		return errors.New("no answer")
	}
	if err := transfer(answer, reply); err != nil {
		return err
	}
	return reply.(interface{ ReplyError() error }).ReplyError()
}

func transfer(from, to any) error {
	message, err := thrift.Marshal(from.(thrift.Struct))
	if err != nil {
		return err
	}
	return thrift.Unmarshal(message, to.(thrift.Struct))
}
