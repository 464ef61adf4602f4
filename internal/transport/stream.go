package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// Stream is one side of a call that has more than one message in a direction, over
// whatever carries it. One goroutine may send while another one receives; neither may
// overlap with itself.
type Stream interface {
	// Room returns an empty buffer, for the next message that Send sends.
	Room() *linkbuf.Buffer
	// Send sends what was appended to Room. It waits while the other side takes no more. last: it is
	// the last message of a client, and ends what that sends as CloseSend does. io.EOF: the
	// call has ended, and Receive says how.
	Send(last bool) error
	// CloseSend tells the other side that no message follows. Only clients call it.
	CloseSend() error
	// Receive waits for a message, until the timeout has passed if that is not 0. io.EOF:
	// none follows. os.ErrDeadlineExceeded: the timeout has passed, and the stream
	// is as it was. The body is valid until the next Receive, or the end of the stream.
	Receive(timeout time.Duration) (body []byte, err error)
	// KeepBody makes the body that Receive returned last its caller's, for as long as he likes.
	KeepBody()
}

// ClientStream is the side of the caller.
type ClientStream interface {
	Stream
	// Header waits for what the server says in front of its first message, or instead of one. It may
	// be called at any time, behind Release too. It is nil if that was only how the call ended.
	Header() ([]Pair, error)
	// End returns how the server ended the call, behind the io.EOF of Receive: status is nil after success.
	// trailer has metadata, business error and executed as those of a unary reply (ReplyHead).
	End() (status *Status, trailer ReplyHead)
	// Cancel ends the call: what waits returns an error with the cause, and the server is told. It may
	// be called at any time, again without effect.
	Cancel(cause error)
	// Release cancels the call if it has not ended, and gives memory back. It must follow in the end, once, when nothing else runs.
	Release()
}

// ServerStream is the side of the handler. It ends with Inbound.FinishStream (success, trailer metadata in
// the ReplyHead) or Inbound.SendException, as unary calls do, or, without either, when Handle returns.
type ServerStream interface {
	Stream
	// SendHeader sends metadata in front of the first message. It fails behind that, or a second time.
	SendHeader(metadata []Pair) error
	// EndReceiving makes Receive return ErrStopping behind what has arrived, unless the client has sent
	// all. It may be called at any time.
	EndReceiving()
}

// OpenStream begins a call of a streaming method. The request has no body; it belongs to
// the stream, also when that cannot be opened.
func (p *Peer) OpenStream(ctx context.Context, request *Request) (ClientStream, error) {
	if waiter, ok := ctx.Value(WaiterKey{}).(Waiter); ok {
		waiter.WillWait()
	}
	if p.local != nil {
		return p.local.open(ctx, request)
	}
	switch {
	case p.grpc != nil:
		return p.grpc.openGRPC(ctx, request)
	case hasTTHeader(p.config.Protocol) && request.payload == wire.PayloadThrift:
		return p.ttstreams().openTTStream(ctx, request)
	}
	defer request.Release()
	detail := fmt.Sprintf("%v has no streams", request.protocol)
	if hasTTHeader(p.config.Protocol) {
		detail = "streams over TTHeader carry Thrift, not Protobuf: use gRPC"
	}
	return nil, &CallError{Phase: PhaseAcquire, Err: &grpc.Error{Code: grpc.Unimplemented, Detail: detail}}
}
