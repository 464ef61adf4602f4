package proxied_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/client/genericclient"
	"github.com/cloudwego/kitex/pkg/generic"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/server/genericserver"
)

// textStruct is a struct with one string, of field id.
func textStruct(id int16, value string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{11}, uint16(id))
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(append(b, value...), 0)
}

// serveGeneric serves every method, of whose bodies it sees the bytes.
func serveGeneric([]string) error {
	listener, err := listen()
	if err != nil {
		return err
	}
	handle := func(ctx context.Context, service, method string, request any) (any, error) {
		body, ok := request.([]byte)
		if !ok {
			return nil, fmt.Errorf("the request is a %T", request)
		}
		switch method {
		case "fail":
			return nil, errors.New("no such order")
		case "business":
			return nil, kerrors.NewBizStatusErrorWithExtra(1001, "not today", map[string]string{"left": "3"})
		case "declared":
			return textStruct(1, "sold out"), nil
		case "nothing":
			return []byte{0}, nil
		case "circumstances":
			trace, _ := metainfo.GetPersistentValue(ctx, "TRACE")
			metainfo.SendBackwardValue(ctx, "COST", "3")
			return textStruct(0, "trace "+trace+" in "+service), nil
		}
		// The argument, field 1, is the result, field 0.
		reply := bytes.Clone(body)
		reply[2] = 0
		return reply, nil
	}
	peer := genericserver.NewServerV2(&generic.ServiceV2{GenericCall: handle}, generic.BinaryThriftGenericV2("Orders"), serverOptions(listener)...)
	// Its service is known by name only, which calls without TTHeader do not have.
	if err := genericserver.RegisterUnknownServiceOrMethodHandler(peer, &genericserver.UnknownServiceOrMethodHandler{DefaultHandler: handle}); err != nil {
		return err
	}
	return peer.Run()
}

// callGeneric calls the server at an address with a transport.
func callGeneric(arguments []string) error {
	caller, err := genericclient.NewClient("proxied.server", generic.BinaryThriftGenericV2("Orders"), clientOptions(arguments[0], arguments[1])...)
	if err != nil {
		return err
	}
	long := strings.Repeat("x", 1<<20)
	for _, call := range [][2]string{
		{"echo", "hi"}, {"echo", ""}, {"echo", long}, {"fail", "x"}, {"business", "x"}, {"declared", "x"}, {"nothing", "x"}, {"circumstances", "x"}, {"echo", "at the end"},
	} {
		o := outcome{Case: call[0]}
		ctx := metainfo.WithBackwardValues(metainfo.WithPersistentValue(context.Background(), "TRACE", "1"))
		reply, err := caller.GenericCall(ctx, call[0], textStruct(1, call[1]))
		explain(&o, err)
		switch body, _ := reply.([]byte); {
		case bytes.Equal(body, textStruct(0, long)):
			o.Reply = "the long text"
		case len(body) > 8 && len(body) == int(binary.BigEndian.Uint32(body[3:]))+8:
			o.Reply = fmt.Sprintf("field %d: %s", body[2], body[7:len(body)-1])
		default:
			o.Reply = fmt.Sprintf("% x", body)
		}
		o.Back, _ = metainfo.RecvBackwardValue(ctx, "COST")
		if err := tell(o); err != nil {
			return err
		}
	}
	return nil
}
