package transport

import (
	"fmt"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// serverStream is a call in gRPC, and the context that it is served with: it ends when the
// peer resets the stream, or the connection ends. What is kept of it is a user's, so it is
// never used again. The lock of the connection guards everything but the context.
type serverStream struct {
	id     uint32
	server *http2Server
	streamEnding

	// The request: what its headers say, and its message as far as it came.
	service, method string
	payload         wire.Payload
	subtype         string
	// encoding is how the request is compressed, nil for not at all, accepted what the
	// client takes, packs that it takes this.
	encoding     *encoding
	encodingName string
	accepted     string
	packs        bool
	fulmar       bool
	head         RequestHead
	headBytes    int
	refused      error
	began        time.Time
	arriving     arriving
	prefix       [grpc.PrefixSize]byte
	prefixed     int
	length       int
	body         []byte
	charged      int
	complete     bool
	// status is the answer in HTTP to a request that is no gRPC's, "" if it is.
	status string
	// target is what LookupExact returned. messages is nil for unary methods.
	target   any
	messages *serverMessages

	// The answer: out is what is sent, of which rest is left, behind which trailers go.
	reply    ReplyHead
	answered bool
	out      *outgoing
	counted  int
	parts    [4][]byte
	rest     [][]byte
	// moved is when the peer last took some of it, zero if nothing waits. waited is when it
	// first had to wait.
	moved, waited time.Time
	// sent: nothing is left to be sent, or it never will be. returned: the handler has.
	sent, returned bool
}

// takeLocked obeys an event. It returns a stream whose request is complete.
func (h *http2Server) takeLocked(event *http2.Event, now time.Time) *serverStream {
	stream, _ := event.Value.(*serverStream)
	if stream != nil && stream.status != "" && event.Kind != http2.EventReset {
		h.http2.Consume(event.Stream, len(event.Data), h.at(now))
		if event.End {
			h.refuseLocked(stream)
		}
		return nil
	}
	switch event.Kind {
	case http2.EventHeaders:
		if stream == nil {
			stream = h.newStreamLocked(event, now)
			if stream != nil && stream.messages != nil {
				stream.complete = true // It runs, whatever follows.
				stream.messages.obeyLocked(event)
				return stream
			}
		} else if stream.messages != nil {
			stream.messages.obeyLocked(event) // trailers: no client of gRPC sends any, but they are an end
			return nil
		}
	case http2.EventData:
		if stream != nil && stream.messages != nil {
			h.gathering.arrived++
			h.brought += int64(len(event.Data))
			stream.messages.obeyLocked(event)
			return nil
		}
		if stream == nil || stream.complete || stream.sent {
			h.http2.Consume(event.Stream, len(event.Data), h.at(now))
			return nil
		}
		h.brought += int64(len(event.Data))
		stream.data(event.Data)
		h.http2.Consume(stream.id, len(event.Data), h.at(now))
	case http2.EventReset:
		if stream != nil {
			h.resetLocked(stream)
		} else {
			h.http2.Release(event.Stream)
		}
		return nil
	default:
		return nil
	}
	if stream == nil || stream.complete || stream.sent || !event.End && !h.refuses(stream) {
		return nil
	}
	stream.complete = true
	stream.checkWhole()
	return stream
}

// checkWhole refuses a request without a whole message.
func (s *serverStream) checkWhole() {
	switch {
	case s.server.refuses(s):
	case s.prefixed == 0:
		// The caller means another method than we do. gRPC has this code for it.
		s.refuse(grpc.Unimplemented, "no message in the request of a unary call")
	case s.prefixed < grpc.PrefixSize || len(s.body) < s.length:
		s.refuse(grpc.Internal, "the request ends before its message does")
	}
}

// refuses reports whether a call is refused whatever its request may be. Who calls an unknown
// method as a stream may wait for a first answer before anything is sent.
func (h *http2Server) refuses(s *serverStream) bool {
	return s.refused != nil || s.target == nil && !h.conn.server.config.TakesUnknown
}

// refuseLocked answers a request that is no gRPC's, when all of it has come: rules of HTTP/2
// that it breaks behind its headers are told first.
func (h *http2Server) refuseLocked(s *serverStream) {
	h.fields = append(h.fields[:0], http2.Field{Name: ":status", Value: s.status}, http2.Field{Name: "content-type", Value: "text/plain"})
	s.complete, s.answered, s.returned = true, true, true
	if h.http2.Headers(s.id, h.fields, false) != nil {
		h.resetLocked(s)
		return
	}
	s.rest = append(s.parts[:0], []byte("status "+s.status+": this port answers gRPC: POST, with content-type application/grpc\n"))
	h.pumpLocked(s)
}

// newStreamLocked makes a stream of the headers of a request. It returns nil if they are
// not gRPC's.
func (h *http2Server) newStreamLocked(event *http2.Event, now time.Time) *serverStream {
	s := &serverStream{id: event.Stream, server: h, began: now}
	s.arriving = h.arrivesLocked(now, 0)
	s.status = s.headers(event)
	s.parent = h.conn.context()
	h.http2.Attach(s.id, s)
	h.streams[s.id] = s
	if s.status != "" {
		if event.End {
			h.refuseLocked(s)
		}
		return nil
	}
	if config := &h.conn.server.config; s.refused == nil {
		if s.target = config.LookupExact(s.service, s.method, s.payload); s.target == nil && config.UnknownStream != nil {
			s.target = config.UnknownStream(s.service, s.method, s.payload)
		}
		if s.target != nil && config.Streams != nil && config.Streams(s.target) {
			s.messages = newServerMessages(s)
		}
	}
	if s.messages == nil {
		s.head.Timeout = min(s.head.Timeout, limits.PeerTimeout)
	}
	return s
}

// headers reads the headers of a request. It returns the status of HTTP with which it is
// refused, "" if it is not.
func (s *serverStream) headers(event *http2.Event) string {
	method, path := "", ""
	var said HTTPHead
	for i := range event.Fields {
		field := &event.Fields[i]
		s.headBytes += len(field.Name) + len(field.Value)
		switch field.Name {
		case ":method":
			method = field.Value
		case ":path":
			path = field.Value
		case ":authority":
			said.Authority = field.Value
		case "content-type":
			said.ContentType = field.Value
		case "user-agent":
			said.UserAgent = field.Value
			s.fulmar = strings.HasPrefix(field.Value, "fulmar")
		case "grpc-accept-encoding":
			said.AcceptEncoding, s.accepted = field.Value, field.Value
		default:
			s.field(field.Name, field.Value)
		}
	}
	subtype, isGRPC := grpc.ContentSubtype(said.ContentType)
	switch {
	case event.TooLarge && !isGRPC:
		return "431"
	case method != "POST":
		return "405"
	case !isGRPC:
		return "415"
	}
	s.says(said)
	s.subtype = subtype
	known := true
	switch subtype {
	case "", "proto":
		s.payload = wire.PayloadProtobuf
	case "thrift":
		s.payload = wire.PayloadThrift
	default:
		known = false
	}
	var ok bool
	s.service, s.method, ok = grpc.SplitPath(path)
	switch {
	case event.TooLarge:
		s.refuse(grpc.ResourceExhausted, "headers of more than %d bytes", limits.HTTP2HeaderListBytes)
	case !ok:
		s.refuse(grpc.Unimplemented, "the path %.100q names no method", path)
	case !known:
		s.subtype = ""
		s.refuse(grpc.Unimplemented, "content type %.100q is not known here", said.ContentType)
	}
	s.negotiate()
	return ""
}

// says keeps what a handler may ask for, in memory that calls of the connection share.
func (s *serverStream) says(said HTTPHead) {
	if s.server.said == nil || *s.server.said != said {
		other := said // Only what is kept needs memory.
		s.server.said = &other
	}
	s.head.HTTP = s.server.said
}

// negotiate finds out how the message is compressed, and whether the answer may be.
func (s *serverStream) negotiate() {
	known := &s.server.conn.server.encodings
	if s.encodingName == "" || s.encodingName == identityName {
		return
	}
	if s.encoding = known.find(s.encodingName); s.encoding == nil {
		s.refuse(grpc.Unimplemented, "encoding %.40q is not known here (known: %s)", s.encodingName, known.known())
		return
	}
	s.packs = accepts(s.accepted, s.encodingName)
}

// Keys of headers in which Kitex has metadata.
const (
	persistentHeader = "rpc-persist-"
	transientHeader  = "rpc-transit-"
	upstreamHeader   = "rpc-transit-upstream-"
)

// field reads any other header.
func (s *serverStream) field(name, value string) {
	switch {
	case name == "grpc-timeout":
		timeout, ok := grpc.ParseTimeout(value)
		if !ok {
			s.refuse(grpc.InvalidArgument, "grpc-timeout %.40q is none", value)
		}
		s.head.Timeout = time.Duration(min(max(timeout, 1), int64(limits.PeerStreamTimeout)))
	case name == "grpc-encoding":
		s.encodingName = value
	case name == "source-service":
		s.head.FromService = value
	case name == "source-method":
		s.head.FromMethod = value
	case name == "", name[0] == ':', name == "te", name == "content-length", strings.HasPrefix(name, "grpc-"), strings.HasPrefix(name, upstreamHeader):
	case strings.HasPrefix(name, persistentHeader):
		s.pair(wire.PersistentPrefix, upperKey(name[len(persistentHeader):]), name, value)
	case strings.HasPrefix(name, transientHeader):
		s.pair(wire.TransientPrefix, upperKey(name[len(transientHeader):]), name, value)
	default:
		s.pair(wire.TransientPrefix, name, name, value)
	}
}

// upperKey returns a key as the sender had it before it became a header.
func upperKey(key string) string { return strings.ReplaceAll(strings.ToUpper(key), "-", "_") }

// pair adds metadata. A header may come several times, and one of bytes with several values.
func (s *serverStream) pair(prefix, key, name, value string) {
	// A header that is there and says nothing is a pair all the same. Metadata of Kitex is
	// not: elsewhere an empty value means that there is none.
	empty := value == "" && key == name
	if empty || !grpc.IsBinary(name) {
		s.add(Pair{Prefix: prefix, Key: key, Value: value}, empty)
		return
	}
	for part := range strings.SplitSeq(value, grpc.BinarySeparator) {
		decoded, ok := grpc.DecodeBinary(part)
		if !ok {
			s.refuse(grpc.Internal, "the value of header %.100q is no base64", name)
			return
		}
		s.add(Pair{Prefix: prefix, Key: key, Value: string(decoded)}, false)
	}
}

// add adds a pair, one that says nothing only if it may be empty: one header of bytes can have
// thousands of those.
func (s *serverStream) add(pair Pair, mayBeEmpty bool) {
	switch {
	case pair.Key == "" || pair.Value == "" && !mayBeEmpty:
	case len(s.head.Metadata) >= limits.HeaderPairs:
		s.refuse(grpc.ResourceExhausted, "more than %d pairs of metadata (limit %d)", limits.HeaderPairs, limits.HeaderPairs)
	default:
		s.head.Metadata = append(s.head.Metadata, pair)
	}
}

// refuse makes the call be refused before its handler runs. The first reason counts.
func (s *serverStream) refuse(code grpc.Code, format string, arguments ...any) {
	if s.refused == nil {
		s.refused = &grpc.Error{Code: code, Detail: fmt.Sprintf(format, arguments...)}
	}
}

// data takes bytes of the request's message. Memory is taken as they arrive, whatever the
// prefix says.
func (s *serverStream) data(b []byte) {
	server := s.server.conn.server
	for len(b) > 0 && s.refused == nil {
		if s.prefixed < grpc.PrefixSize {
			n := copy(s.prefix[s.prefixed:], b)
			s.prefixed += n
			b = b[n:]
			if s.prefixed < grpc.PrefixSize {
				return
			}
			_, compressed, used, need, err := grpc.Next(s.prefix[:], server.config.Limits.Bytes)
			s.length = max(used, need) - grpc.PrefixSize
			switch {
			case err != nil:
				s.refused = err
			case (compressed || s.prefix[0] == 1) && s.encoding == nil:
				s.refuse(grpc.Internal, "the message is compressed, and no encoding was named")
			}
			continue
		}
		n := min(len(b), s.length-len(s.body))
		if n == 0 {
			s.refuse(grpc.Unimplemented, "more than one message in the request of a unary call")
			return
		}
		if !s.grow(n) {
			return
		}
		s.body = append(s.body, b[:n]...)
		b = b[n:]
	}
}

// requestPiece is how much memory the beginning of a message gets, if it is not shorter.
const requestPiece = 32 << 10

// grow makes room for n more bytes of the message.
func (s *serverStream) grow(n int) bool {
	server := s.server.conn.server
	need := len(s.body) + n
	if s.body != nil && need <= cap(s.body) {
		return true
	}
	size := min(s.length, max(need, requestPiece, 2*cap(s.body)))
	if size >= budgetBytesMin {
		if err := server.budget.takePart(size - s.charged); err != nil {
			s.refused = err
			return false
		}
		s.charged = size
	}
	before := s.body
	s.body = append(server.buffers.Get(size), before...)
	if before != nil {
		server.buffers.Put(before)
	}
	return true
}

// inflate makes the message of the request what it was before it was compressed.
func (s *serverStream) inflate() error {
	server := s.server.conn.server
	body, charged, err := s.encoding.inflate(s, s.body, server.config.Limits.Bytes, server.buffers, &server.budget)
	if err == nil {
		server.buffers.Put(s.body)
		s.body = body
		s.charged += charged
	}
	s.server.blame(err)
	return err
}

// dropRequest gives the memory of the request back, unless the call has it.
func (s *serverStream) dropRequest() {
	server := s.server.conn.server
	if s.body != nil {
		server.buffers.Put(s.body)
		s.body = nil
	}
	server.budget.give(s.charged)
	s.charged = 0
}

// The answers of the call.

func (s *serverStream) send(call *Inbound, o *outgoing) error { return s.server.send(call, s, o) }

func (s *serverStream) sendException(call *Inbound, _ string, exception thriftwire.ApplicationException, head ReplyHead) error {
	return s.server.sendStatus(call, s, head, exception.Message)
}

func (s *serverStream) finish(call *Inbound, head ReplyHead) error {
	return s.server.finishStream(call, s, head)
}

func (s *serverStream) finished(call *Inbound) { s.server.done(call, s) }

func (s *serverStream) keepHead(head ReplyHead) { s.reply = head }

// serve runs a call, on the goroutine of data. Others do not wait for it once it lets go
// of the connection.
func (h *http2Server) serve(s *serverStream, now time.Time) {
	c := h.conn
	server := c.server
	call := c.newInbound(s.began, now, s.headBytes+len(s.body))
	call.Protocol, call.Payload, call.Type = wire.GRPC, s.payload, thriftwire.Call
	call.Ends = c.Ends
	call.server, call.conn, call.stream = server, c, s
	call.fulmar, call.invalid = s.fulmar, s.refused
	call.Head = s.head
	c.refuseIfStopped(call)
	if call.invalid == nil {
		call.Target = s.target
	}
	if call.Target == nil {
		call.Name, call.Head.Service = s.method, s.service
		if call.invalid == nil {
			call.invalid = thriftwire.CheckName([]byte(s.method))
		}
	}
	server.running.Add(1)
	c.mu.Lock()
	c.running++
	// It has what it waited for. If nothing follows, nobody else says so.
	c.awaited, c.deadline = awaitMessage, time.Time{}
	c.mu.Unlock()
	c.conn.Reader().Done()
	call.here = true
	if call.invalid == nil && s.prefix[0] == 1 {
		// It takes longer than others should wait.
		call.LetGo()
		call.invalid = s.inflate()
	}
	if call.invalid == nil {
		call.invalid = server.budget.take(len(s.body) + s.headBytes)
	}
	if call.invalid == nil {
		call.Body, call.copied, call.counted, call.headBytes = s.body, true, len(s.body), s.headBytes
		if call.Body == nil {
			call.Body, call.copied = []byte{}, false
		}
		s.body = nil
	}
	s.dropRequest()
	if s.messages != nil {
		s.messages.serve(call)
	}
	server.run(s, call)
}
