package grpccompat

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
)

// withCall returns the context that a handler for grpc-go gets.
func withCall(ctx context.Context, transport grpc.ServerTransportStream) context.Context {
	if call, ok := fulmar.CallFrom(ctx); ok {
		ctx = metadata.NewIncomingContext(ctx, incoming(call))
		ctx = peer.NewContext(ctx, peerOf(call))
	}
	return grpc.NewContextWithServerTransportStream(ctx, transport)
}

// errHeaderSent is why metadata cannot be sent in front of the messages.
var errHeaderSent = errors.New("grpccompat: the header was sent already")

// unaryCall is what grpc.SetHeader and its likes find in the context of a unary call. The
// header leaves with the answer, also when it is sent before.
type unaryCall struct {
	method string

	mu              sync.Mutex
	header, trailer metadata.MD
	sent            bool
}

var _ grpc.ServerTransportStream = (*unaryCall)(nil)

func (c *unaryCall) context(ctx context.Context) context.Context { return withCall(ctx, c) }

// Method implements grpc.ServerTransportStream.
func (c *unaryCall) Method() string { return c.method }

// SetHeader implements grpc.ServerTransportStream.
func (c *unaryCall) SetHeader(md metadata.MD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent {
		return errHeaderSent
	}
	c.header = metadata.Join(c.header, md)
	return nil
}

// SendHeader implements grpc.ServerTransportStream.
func (c *unaryCall) SendHeader(md metadata.MD) error {
	err := c.SetHeader(md)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
	return err
}

// SetTrailer implements grpc.ServerTransportStream.
func (c *unaryCall) SetTrailer(md metadata.MD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trailer = metadata.Join(c.trailer, md)
	return nil
}

// reply hands over what was set, when the handler has returned. Keys that cannot be sent are
// left out, as grpc-go leaves them out, and so are those with a value that cannot.
func (c *unaryCall) reply(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = true
	for key, values := range returnable(c.header) {
		_ = fulmar.SetReplyMetadata(ctx, key, values...)
	}
	for key, values := range returnable(c.trailer) {
		_ = fulmar.SetReplyTrailer(ctx, key, values...)
	}
}

// serverStream is a grpc.ServerStream on one of Fulmar.
type serverStream struct {
	messages *fulmar.ServerMessages
	ctx      context.Context
	unaryCall
}

var _ grpc.ServerStream = (*serverStream)(nil)

func newServerStream(method string, messages *fulmar.ServerMessages) *serverStream {
	s := &serverStream{messages: messages, unaryCall: unaryCall{method: method}}
	s.ctx = withCall(messages.Context(), streamTransport{s})
	return s
}

// streamTransport is what grpc.SetHeader and its likes find in the context of a stream.
type streamTransport struct{ *serverStream }

var _ grpc.ServerTransportStream = streamTransport{}

// SetTrailer implements grpc.ServerTransportStream.
func (t streamTransport) SetTrailer(md metadata.MD) error { return t.unaryCall.SetTrailer(md) }

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// SendHeader implements grpc.ServerStream: it sends at once.
func (s *serverStream) SendHeader(md metadata.MD) error {
	if err := s.SetHeader(md); err != nil {
		return err
	}
	return s.sendHeader(true)
}

// sendHeader sends the header if that has not happened, and if there is one or it must be.
func (s *serverStream) sendHeader(must bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent || !must && len(s.header) == 0 {
		return nil
	}
	s.sent = true
	return toStatus(s.messages.SendHeaderMetadata(toReturn(s.header)))
}

// SetTrailer implements grpc.ServerStream.
func (s *serverStream) SetTrailer(md metadata.MD) { _ = s.unaryCall.SetTrailer(md) }

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(message any) error {
	if err := s.sendHeader(false); err != nil {
		return err
	}
	s.mu.Lock()
	s.sent = true
	s.mu.Unlock()
	err := s.messages.Send(filled(message))
	if err == io.EOF {
		return status.Error(codes.Canceled, "the caller has gone")
	}
	return toStatus(err)
}

// RecvMsg implements grpc.ServerStream.
func (s *serverStream) RecvMsg(message any) error { return toStatus(s.messages.Recv(message)) }

// end hands over what was set, when the handler has returned err.
func (s *serverStream) end(err error) error {
	// Who has gone needs no header.
	_ = s.sendHeader(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, values := range returnable(s.trailer) {
		_ = fulmar.SetReplyMetadata(s.messages.Context(), key, values...)
	}
	return fromStatus(err)
}
