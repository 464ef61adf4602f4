package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// grpcReply is what has come of the answer to a call in gRPC: headers, one message, and
// trailers, which have the status. Whoever reads the connection fills it in, until the
// call has its outcome.
type grpcReply struct {
	// answered: the headers came.
	answered bool
	status   grpcStatus
	encoding string
	business BusinessStatus
	executed string
	// pairs are metadata, of which the first ahead came in front of the message.
	pairs []Pair
	ahead int

	// prefix is what of it came, started that it is complete, whole that the message is.
	prefix         [grpc.PrefixSize]byte
	prefixed       int
	started, whole bool
	compressed     bool
	length         int
	body           []byte
	buffers        *linkbuf.Pool
}

// grpcStatus is how a call has ended.
type grpcStatus struct {
	known   bool
	code    uint32
	message string
	details []byte
}

// Status is what a server says of a call that has failed.
type Status struct {
	// Code is one of gRPC's, or any other number.
	Code    uint32
	Message string
	// Details is a google.rpc.Status in Protobuf, nil if there is none.
	Details []byte
	// IsException says that the server sent an application exception of Thrift, of the type
	// Exception, and no Code.
	IsException bool
	Exception   thriftwire.ExceptionType
}

// reset makes the reply ready for another one. Memory of a message that nobody took is
// given back.
func (r *grpcReply) reset() {
	if r.buffers != nil && r.body != nil {
		r.buffers.Put(r.body)
	}
	clear(r.pairs)
	*r = grpcReply{pairs: r.pairs[:0]}
}

// headers takes a header block. An error ends the call.
func (r *grpcReply) headers(event *http2.Event) error {
	if event.TooLarge {
		return &grpc.Error{Code: grpc.ResourceExhausted, Detail: fmt.Sprintf("headers of the reply are longer than %d bytes", limits.HTTP2HeaderListBytes)}
	}
	httpStatus, contentType := "", ""
	for i := range event.Fields {
		field := &event.Fields[i]
		switch field.Name {
		case ":status":
			httpStatus = field.Value
		case "content-type":
			contentType = field.Value
		case "grpc-encoding":
			if !r.answered { // messages are in front of trailers
				r.encoding = field.Value
			}
		case "grpc-status", "grpc-message", "grpc-status-details-bin":
			// How the call ended is said in the last headers. Elsewhere it is a mistake, or
			// somebody between the two has made others of them.
			if !event.End {
				continue
			}
			fallthrough
		default:
			if err := r.field(field); err != nil {
				return err
			}
		}
	}
	if event.Trailers || r.answered {
		return nil
	}
	r.answered = true
	if !event.End {
		r.ahead = len(r.pairs)
	}
	return r.checkHTTP(httpStatus, contentType)
}

// checkHTTP refuses an answer that is no gRPC server's, unless it says how the call ended
// all the same.
func (r *grpcReply) checkHTTP(status, contentType string) error {
	_, isGRPC := grpc.ContentSubtype(contentType)
	if status == "200" && isGRPC || r.status.known {
		return nil
	}
	number, _ := strconv.Atoi(status)
	return &grpc.Error{Code: grpc.CodeOfHTTP(number), Detail: fmt.Sprintf(
		"the answer is not gRPC's, but HTTP status %s with content type %.100q", status, contentType)}
}

// field takes a header that may be in front of the message and behind it.
func (r *grpcReply) field(field *http2.Field) error {
	switch name, value := field.Name, field.Value; name {
	case "grpc-status":
		code, ok := grpc.ParseCode(value)
		if !ok {
			return &grpc.Error{Code: grpc.Unknown, Detail: fmt.Sprintf("grpc-status %.40q is no number", value)}
		}
		r.status.known, r.status.code = true, uint32(code)
	case "grpc-message":
		r.status.message = grpc.DecodeMessage(value)
	case "grpc-status-details-bin":
		// What is no base64 is lost, and the status is not.
		r.status.details, _ = grpc.DecodeBinary(value)
	case wire.Executed:
		r.executed = value
	case wire.BusinessStatus:
		status, err := strconv.ParseInt(value, 10, 32)
		if err == nil {
			r.business.Status = int32(status)
		}
	case wire.BusinessExtra:
		var extra map[string]string
		if value != "" && json.Unmarshal([]byte(value), &extra) != nil {
			return replyError(thriftwire.ExceptionInternalError, "%s of the reply is not a JSON object of texts: %.100q", wire.BusinessExtra, value)
		}
		r.business.Extra = extra
	case "date", "server", "grpc-accept-encoding", "content-length":
	default:
		r.pair(name, value)
	}
	return nil
}

// pair adds metadata. A key may come several times, and one of bytes with several values.
func (r *grpcReply) pair(name, value string) {
	if !grpc.IsBinary(name) {
		r.pairs = append(r.pairs, Pair{Key: name, Value: value})
		return
	}
	for part := range strings.SplitSeq(value, grpc.BinarySeparator) {
		// One header can have thousands: those beyond the limit are lost, the reply is not.
		if decoded, ok := grpc.DecodeBinary(part); ok && len(r.pairs) < limits.HeaderPairs {
			r.pairs = append(r.pairs, Pair{Key: name, Value: string(decoded)})
		}
	}
}

// data takes bytes of the message. Memory is taken as they arrive, whatever the prefix
// says. An error ends the call.
func (r *grpcReply) data(b []byte, request *Request, limit int, pool *linkbuf.Pool) error {
	for len(b) > 0 {
		if r.whole {
			return &grpc.Error{Code: grpc.Unimplemented, Detail: "more than one message in a reply"}
		}
		if !r.started {
			n := copy(r.prefix[r.prefixed:], b)
			r.prefixed += n
			b = b[n:]
			if r.prefixed < grpc.PrefixSize {
				return nil
			}
			_, _, used, need, err := grpc.Next(r.prefix[:], limit)
			if err != nil {
				return err
			}
			r.started, r.compressed = true, r.prefix[0] == 1
			r.length = max(used, need) - grpc.PrefixSize
			r.whole = r.length == 0
			continue
		}
		n := min(len(b), r.length-len(r.body))
		r.grow(n, request, pool)
		r.body = append(r.body, b[:n]...)
		r.whole = len(r.body) == r.length
		b = b[n:]
	}
	return nil
}

// replyPiece is how much memory the beginning of a message gets, if it is not shorter.
const replyPiece = 32 << 10

// grow makes room for n more bytes of the message.
func (r *grpcReply) grow(n int, request *Request, pool *linkbuf.Pool) {
	need := len(r.body) + n
	if r.body != nil && need <= cap(r.body) {
		return
	}
	size := min(r.length, max(need, replyPiece, 2*cap(r.body)))
	before, buffers := r.body, r.buffers
	if request.keeps && !r.compressed {
		r.body = make([]byte, 0, size)
	} else {
		r.body, r.buffers = pool.Get(size), pool
	}
	r.body = append(r.body, before...)
	if buffers != nil {
		buffers.Put(before)
	}
}

// finish makes the response of what has come, on the goroutine of the caller.
func (r *grpcReply) finish(request *Request, limit int) (*Response, error) {
	response := &request.response
	head := ReplyHead{Executed: r.executed, Metadata: r.pairs[:r.ahead], Trailing: r.pairs[r.ahead:]}
	if r.business.Status != 0 {
		head.Business = &BusinessStatus{Status: r.business.Status, Message: r.status.message, Extra: r.business.Extra}
	}
	*response = Response{Type: thriftwire.Reply, Payload: request.payload, Head: head}
	switch {
	case head.Business != nil:
		return response, nil
	case !r.status.known:
		return nil, &grpc.Error{Code: grpc.Internal, Detail: "the server ended the reply without a status"}
	case r.status.code != uint32(grpc.OK):
		response.Status = &Status{Code: r.status.code, Message: r.status.message, Details: r.status.details}
		return response, nil
	case r.prefixed == 0:
		// The two do not mean the same method. gRPC has this code for it.
		return nil, &grpc.Error{Code: grpc.Unimplemented, Detail: "the server ended the reply without a message"}
	case !r.whole:
		return nil, &grpc.Error{Code: grpc.Internal, Detail: "the server ended the reply within its message"}
	}
	if r.compressed {
		return r.inflate(response, request, limit)
	}
	response.Body, response.buffers = r.body, r.buffers
	r.body, r.buffers = nil, nil
	return response, nil
}

// inflate makes the body of a response of a message that is compressed.
func (r *grpcReply) inflate(response *Response, request *Request, limit int) (*Response, error) {
	encoding := request.grpc.encodings.find(strings.ToLower(r.encoding))
	if encoding == nil {
		return nil, &grpc.Error{Code: grpc.Internal, Detail: fmt.Sprintf("the message is compressed with %.40q (known: %s)", r.encoding, request.grpc.encodings.known())}
	}
	body, _, err := encoding.inflate(context.Background(), r.body, limit, r.buffers, nil)
	if err != nil {
		return nil, err
	}
	if response.Body, response.buffers = body, r.buffers; request.keeps {
		response.Body, response.buffers = slices.Clone(body), nil
		r.buffers.Put(body)
	}
	return response, nil
}
