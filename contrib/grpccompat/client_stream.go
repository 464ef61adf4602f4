package grpccompat

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fulmar-rpc/fulmar"
)

// clientStream is a grpc.ClientStream on one of Fulmar.
type clientStream struct {
	client   *Client
	messages *fulmar.ClientMessages
	options  *callOptions
	// many: the server sends any number of messages.
	many bool

	finishing sync.Once
	// abandoned: the stream was given up here.
	abandoned atomic.Bool
}

var _ grpc.ClientStream = (*clientStream)(nil)

// newStream opens a stream.
func (c *Client) newStream(ctx context.Context, desc *grpc.StreamDesc, name string, options []grpc.CallOption) (grpc.ClientStream, error) {
	o, err := c.choose(options)
	if err == nil {
		var messages *fulmar.ClientMessages
		if messages, err = c.open(ctx, desc, name, o); err == nil {
			s := &clientStream{client: c, messages: messages, options: o, many: desc.ServerStreams}
			if o.watched() {
				context.AfterFunc(messages.Context(), s.leave)
			}
			return s, nil
		}
	}
	o.finish(err)
	return nil, err
}

func (c *Client) open(ctx context.Context, desc *grpc.StreamDesc, name string, o *callOptions) (*fulmar.ClientMessages, error) {
	// A stub may open a stream for a method with one message each way; the bytes are the same.
	method, err := c.method(name, desc.ClientStreams, desc.ServerStreams || !desc.ClientStreams)
	if err != nil {
		return nil, err
	}
	if ctx, err = c.outgoing(ctx, method, name, o); err != nil {
		return nil, err
	}
	messages, err := c.client.OpenStream(ctx, method, o.fulmar...)
	return messages, toStatus(err)
}

// Header implements grpc.ClientStream. As in grpc-go it does not fail: RecvMsg says why a call
// has none.
func (s *clientStream) Header() (metadata.MD, error) {
	header, _ := s.messages.HeaderMetadata()
	return returned(header), nil
}

// Trailer implements grpc.ClientStream.
func (s *clientStream) Trailer() metadata.MD { return returned(s.messages.TrailerMetadata()) }

// CloseSend implements grpc.ClientStream. As in grpc-go it does not fail: RecvMsg says how the call ended.
func (s *clientStream) CloseSend() error {
	_ = s.messages.CloseSend()
	return nil
}

// Context implements grpc.ClientStream.
func (s *clientStream) Context() context.Context { return s.messages.Context() }

// SendMsg implements grpc.ClientStream.
func (s *clientStream) SendMsg(message any) error {
	message = filled(message)
	if err := s.options.checkSent(message); err != nil {
		return s.abandon(err)
	}
	return toStatus(s.messages.Send(message))
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(message any) error {
	err := s.messages.Recv(message)
	if err == nil {
		if err = s.options.checkReceived(message); err != nil {
			return s.abandon(err)
		}
	}
	switch {
	case s.many:
		if err != nil {
			return s.ended(toStatus(err))
		}
		return nil
	case err == io.EOF:
		return s.ended(status.Error(codes.Internal, "cardinality violation: the server ended the call without its message"))
	case err != nil:
		return s.ended(toStatus(err))
	}
	// How the call ended comes behind its only message, which is left as it is.
	switch err := s.messages.Recv(another(message)); err {
	case io.EOF:
		_ = s.ended(nil)
		return nil
	case nil:
		return s.abandon(status.Error(codes.Internal, "cardinality violation: the server sent more than one message"))
	default:
		return s.ended(toStatus(err))
	}
}

// abandon ends the stream for a reason of this side, and returns it.
func (s *clientStream) abandon(err error) error {
	s.abandoned.Store(true)
	s.messages.Cancel()
	return s.ended(err)
}

// leave hands over what ended does when the stream is over and nobody asks it for its end, such
// as a caller who cancels its context and goes.
func (s *clientStream) leave() {
	if s.abandoned.Load() {
		return // abandon knows why.
	}
	err := s.messages.Recv(new(emptypb.Empty)) // takes any message
	for err == nil {
		err = s.messages.Recv(new(emptypb.Empty))
	}
	// Behind the last message RecvMsg is the one who knows whether that is an error.
	if err != io.EOF {
		_ = s.ended(toStatus(err))
	}
}

// ended hands over what the options of the call asked for, once, and returns err.
func (s *clientStream) ended(err error) error {
	s.finishing.Do(func() {
		header, _ := s.messages.HeaderMetadata()
		s.options.returned(header, s.messages.TrailerMetadata())
		told := err
		if told == io.EOF {
			told = nil
		}
		s.options.reached(s.client, nil)
		s.options.finish(told)
	})
	return err
}
