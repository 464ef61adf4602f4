package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/framed"
	"github.com/fulmar-rpc/fulmar/internal/wire/kitexprotobuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// lengthProtocols are those that messages in Protobuf can be sent with.
var lengthProtocols = []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed}

// hi is a message {1: "hi"}.
var hi = fulmar.Raw{0x0a, 2, 'h', 'i'}

func protobufMethod(t *testing.T, method string, oneway bool) *fulmar.MethodDesc {
	t.Helper()
	desc, err := fulmar.RawProtobufMethod("Pantry", method, oneway)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// protobufMessage returns a framed message in Protobuf.
func protobufMessage(kind thriftwire.MessageType, name string, sequence int32, body []byte) []byte {
	b := make([]byte, kitexprotobuf.HeaderSize(name))
	kitexprotobuf.PutHeader(b, kind, name, sequence)
	return frame(append(b, body...))
}

// readMessage reads the next message in whatever form it comes.
func readMessage(t *testing.T, r io.Reader) wire.Message {
	t.Helper()
	var b []byte
	for need := 8; ; {
		next := make([]byte, need-len(b))
		if _, err := io.ReadFull(r, next); err != nil {
			t.Fatalf("reading a message: %v, after % x", err, b)
		}
		b = append(b, next...)
		parse := framed.Next
		if match, _ := ttheader.Matches(b); match {
			parse = ttheader.Next
		}
		message, used, more, err := parse(b, limits.DefaultMessage())
		if err != nil {
			t.Fatalf("% x: %v", b, err)
		}
		if used > 0 {
			return message
		}
		need = more
	}
}

// wantProtobufException reads an exception in Protobuf.
func wantProtobufException(t *testing.T, r io.Reader, sequence int32, kind thriftwire.ExceptionType, text string) wire.Message {
	t.Helper()
	message := readMessage(t, r)
	exception, err := kitexprotobuf.ParseException(message.Body)
	if err != nil || message.Payload != wire.PayloadProtobuf || message.Type != thriftwire.Exception || message.Sequence != sequence ||
		exception.Type != kind || !strings.Contains(exception.Message, text) {
		t.Errorf("got %+v with %+v, %v; want sequence %d, exception %d with %q", message, exception, err, sequence, kind, text)
	}
	return message
}

// pantry is a server with a handler that does what the method is called.
func pantry(t *testing.T, told chan<- fulmar.Raw) *running {
	t.Helper()
	return unknown(t, func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
		call, _ := fulmar.CallFrom(ctx)
		if call.PayloadCodec() != fulmar.PayloadProtobuf {
			return nil, fulmar.Errorf(fulmar.InvalidArgument, "the handler is told %v", call.PayloadCodec())
		}
		switch call.Method() {
		case "nothing":
			return nil, nil
		case "business":
			return nil, fulmar.NewBusinessError(1001, "not today", map[string]string{"left": "3"})
		case "missing":
			return nil, fulmar.NewError(fulmar.NotFound, "no such jar")
		case "panics":
			panic("a secret")
		case "tell":
			told <- slices.Clone(request)
		case "deadline":
			left, ok := call.Deadline()
			persistent, _ := call.Metadata().Persistent("TRACE")
			if carriesHead(call.Protocol()) && (!ok || time.Until(left) > time.Minute || persistent != "1" || call.Service() != "Pantry") {
				return nil, fulmar.Errorf(fulmar.Internal, "deadline %v, trace %q, service %q", left, persistent, call.Service())
			}
			return request, fulmar.SetReplyMetadata(ctx, "COST", "3")
		}
		return request, nil
	})
}

// TestProtobuf_PassesAsBytes: with each protocol that has a length, called and through
// a proxy that has each as its way on.
func TestProtobuf_PassesAsBytes(t *testing.T) {
	told := make(chan fulmar.Raw, 1)
	back := pantry(t, told)
	for _, in := range lengthProtocols {
		t.Run("direct "+in.String(), func(t *testing.T) {
			checkPantry(t, dialAny(t, fulmar.ClientConfig{Target: back.address, Protocol: in}), in, in, told)
		})
		for _, out := range lengthProtocols {
			t.Run(in.String()+" to "+out.String(), func(t *testing.T) {
				forward := fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address, Protocol: out}))
				front := unknown(t, forward)
				checkPantry(t, dialAny(t, fulmar.ClientConfig{Target: front.address, Protocol: in}), in, out, told)
			})
		}
	}
	t.Run("local", func(t *testing.T) {
		checkPantry(t, dialAny(t, fulmar.ClientConfig{Local: back.server}), fulmar.TTHeader, fulmar.TTHeader, told)
	})
}

func checkPantry(t *testing.T, client *fulmar.Client, in, out fulmar.Protocol, told <-chan fulmar.Raw) {
	t.Helper()
	ctx := fulmar.WithPersistent(t.Context(), "TRACE", "1")
	for _, length := range []int{0, 3, 1_000, 20_000, limits.LinkedStringBytes, 1 << 20} {
		request, reply := fulmar.Raw(bytes.Repeat([]byte{0x0a}, length)), fulmar.Raw(nil)
		if err := client.Call(ctx, protobufMethod(t, "echo", false), &request, &reply); err != nil || !bytes.Equal(reply, request) {
			t.Errorf("%d bytes: %d came back, %v", length, len(reply), err)
		}
	}
	call := func(method string) (reply fulmar.Raw, metadata map[string]string, err error) {
		request := slices.Clone(hi)
		err = client.Call(ctx, protobufMethod(t, method, false), &request, &reply, fulmar.ReceiveMetadata(&metadata), fulmar.Timeout(20*time.Second))
		return reply, metadata, err
	}
	if reply, _, err := call("nothing"); err != nil || len(reply) != 0 {
		t.Errorf("an empty reply arrives as % x, %v", reply, err)
	}
	_, metadata, err := call("deadline")
	if got := metadata["COST"]; carriesHead(in) && carriesHead(out) && (err != nil || got != "3") {
		t.Errorf("metadata %v comes back, %v", metadata, err)
	}
	_, _, err = call("business")
	var business *fulmar.BusinessError
	if got := errors.As(err, &business); got != (carriesHead(in) && carriesHead(out)) || err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the business error arrives as %v", err)
	}
	_, _, err = call("missing")
	e := asError(t, err)
	if !strings.Contains(e.Message(), "no such jar") || e.Origin() != fulmar.OriginRemote || carriesHead(in) && carriesHead(out) && e.Code() != fulmar.NotFound {
		t.Errorf("the handler's error arrives as %v", err)
	}
	if _, _, err = call("panics"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a panic arrives as %v", err)
	}
	request := slices.Clone(hi)
	if err := client.Call(ctx, protobufMethod(t, "tell", true), &request, nil); err != nil {
		t.Error(err)
	} else if got := <-told; !bytes.Equal(got, hi) {
		t.Errorf("the oneway call arrives with % x", got)
	}
}

// TestProtobuf_IsRefusedInProtobuf by servers that have no handler for it, in the way that
// its callers understand, and the connection goes on where that is possible.
func TestProtobuf_IsRefusedInProtobuf(t *testing.T) {
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
	head := ttheader.Head{Sequence: 9}
	behind := func(b []byte) []byte { return headed(t, head, b) }
	plain := func(b []byte) []byte { return b }
	thriftOnly := []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader}
	for name, test := range map[string]struct {
		protocols []fulmar.Protocol
		wrap      func([]byte) []byte
		kind      thriftwire.ExceptionType
		text      string
		ends      bool
	}{
		"framed":            {nil, plain, thriftwire.ExceptionUnknownMethod, "unknown method \"find\" for calls in protobuf", false},
		"ttheader":          {nil, behind, thriftwire.ExceptionUnknownMethod, "unknown method \"find\" for calls in protobuf", false},
		"framed, left out":  {thriftOnly, plain, thriftwire.ExceptionInvalidProtocol, "not enabled", true},
		"ttheader, as well": {thriftOnly, behind, thriftwire.ExceptionInvalidProtocol, "not enabled", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, fulmar.ServerConfig{Protocols: test.protocols}, stub)
			conn := connect(t, server.address)
			write(t, conn, test.wrap(protobufMessage(thriftwire.Call, "find", 7, hi)))
			message := wantProtobufException(t, conn, 7, test.kind, test.text)
			if string(message.Name) != "find" {
				t.Errorf("the answer names %q", message.Name)
			}
			if executed, _ := message.Info.String(wire.Executed); message.Info.Len() > 0 && string(executed) != "no" {
				t.Errorf("the answer says executed %q", executed)
			}
			if test.ends {
				if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
					t.Errorf("behind the refusal: % x, %v", b, err)
				}
				return
			}
			// A oneway call is not answered, and what follows is understood.
			write(t, conn, test.wrap(protobufMessage(thriftwire.Oneway, "find", 8, hi)), nothingCall())
			if next := readMessage(t, conn); next.Type != thriftwire.Reply || next.Payload != wire.PayloadThrift || next.Sequence != 1 {
				t.Errorf("the next call gets %+v", next)
			}
		})
	}
}

// TestProtobuf_BrokenMessagesAreAnswered, and do not end the connection.
func TestProtobuf_BrokenMessagesAreAnswered(t *testing.T) {
	server := pantry(t, nil)
	conn := connect(t, server.address)
	badType := protobufMessage(thriftwire.Call, "find", 7, hi)
	badType[6] = 1
	write(t, conn, badType)
	wantProtobufException(t, conn, 7, thriftwire.ExceptionInvalidMessageType, "unknown message type 257")
	write(t, conn, protobufMessage(thriftwire.Reply, "find", 8, hi))
	wantProtobufException(t, conn, 8, thriftwire.ExceptionInvalidMessageType, "not that of a call")
	write(t, conn, protobufMessage(thriftwire.Call, "a\x00b", 9, hi))
	wantProtobufException(t, conn, 9, thriftwire.ExceptionProtocolError, "control character")
	write(t, conn, protobufMessage(thriftwire.Call, "echo", 10, hi))
	if got := readMessage(t, conn); got.Type != thriftwire.Reply || !bytes.Equal(got.Body, hi) || got.Sequence != 10 {
		t.Errorf("a good call gets %+v", got)
	}
}

// TestProtobuf_RegisteredMethods serve their own encoding, and leave the other one to the
// handler for unknown calls, if there is one.
func TestProtobuf_RegisteredMethods(t *testing.T) {
	find := protobufMethod(t, "find", false)
	find.Invoke = func(_ context.Context, _, request any) (any, error) {
		reply := fulmar.Raw("found " + string(*request.(*fulmar.Raw)))
		return &reply, nil
	}
	desc := &fulmar.ServiceDesc{Name: "Pantry", Methods: []*fulmar.MethodDesc{find}}
	register := func(registrar fulmar.Registrar) {
		registrar.RegisterService(desc, struct{}{})
		testservice.RegisterEchoServer(registrar, &testservice.Stub{})
	}
	for _, protocol := range lengthProtocols {
		alone := serveAny(t, fulmar.ServerConfig{}, register)
		helped := serveAny(t, fulmar.ServerConfig{UnknownHandler: func(ctx context.Context, _ fulmar.Raw) (fulmar.Raw, error) {
			call, _ := fulmar.CallFrom(ctx)
			return fulmar.Raw("handled " + call.PayloadCodec().String()), nil
		}}, register)
		call := func(server *running, method *fulmar.MethodDesc) string {
			request, reply := slices.Clone(hi), fulmar.Raw(nil)
			err := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol}).Call(t.Context(), method, &request, &reply)
			if err != nil {
				return asError(t, err).Message()
			}
			return string(reply)
		}
		inProtobuf, err := fulmar.RawProtobufMethod("Echo", "nothing", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			server *running
			method *fulmar.MethodDesc
			want   string
		}{
			{alone, protobufMethod(t, "find", false), "found " + string(hi)},
			{alone, rawMethod(t, "Pantry", "find"), `method "find" takes calls in protobuf, this one is in thrift`},
			{alone, inProtobuf, `method "nothing" takes calls in thrift, this one is in protobuf`},
			{helped, protobufMethod(t, "find", false), "found " + string(hi)},
			{helped, rawMethod(t, "Pantry", "find"), "handled thrift"},
			{helped, inProtobuf, "handled protobuf"},
		} {
			if got := call(test.server, test.method); got != test.want {
				t.Errorf("%v, %s: %q, want %q", protocol, test.method.Name, got, test.want)
			}
		}
	}
}

// TestProtobuf_RepliesInAnotherEncoding are none, but exceptions count.
func TestProtobuf_RepliesInAnotherEncoding(t *testing.T) {
	exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod, Message: "no such thing"}
	inThrift := make([]byte, exception.Size())
	exception.Put(inThrift)
	inProtobuf := make([]byte, kitexprotobuf.ExceptionSize(exception))
	kitexprotobuf.PutException(inProtobuf, exception)
	for name, test := range map[string]struct {
		method *fulmar.MethodDesc
		answer []byte
		code   fulmar.Code
		text   string
	}{
		"a reply in Thrift":         {protobufMethod(t, "m", false), frame(message(thriftwire.Reply, "m", 1, []byte{0})), fulmar.Internal, "the reply is in thrift, the call was in protobuf"},
		"a reply in Protobuf":       {rawMethod(t, "", "m"), protobufMessage(thriftwire.Reply, "m", 1, hi), fulmar.Internal, "the reply is in protobuf, the call was in thrift"},
		"an exception in Thrift":    {protobufMethod(t, "m", false), frame(message(thriftwire.Exception, "m", 1, inThrift)), fulmar.Unimplemented, "no such thing"},
		"an exception in Protobuf":  {rawMethod(t, "", "m"), protobufMessage(thriftwire.Exception, "m", 1, inProtobuf), fulmar.Unimplemented, "no such thing"},
		"a broken exception":        {protobufMethod(t, "m", false), protobufMessage(thriftwire.Exception, "m", 1, []byte{0x08}), fulmar.Internal, "exception in Protobuf: no varint"},
		"a reply of another method": {protobufMethod(t, "m", false), protobufMessage(thriftwire.Reply, "n", 1, hi), fulmar.Internal, `the reply is for method "n"`},
	} {
		t.Run(name, func(t *testing.T) {
			client := dialAny(t, fulmar.ClientConfig{Target: answering(t, test.answer), Protocol: fulmar.Framed})
			request, reply := slices.Clone(hi), fulmar.Raw(nil)
			e := asError(t, client.Call(t.Context(), test.method, &request, &reply))
			if e.Code() != test.code || !strings.Contains(e.Message(), test.text) {
				t.Errorf("got %v, want %v with %q", e, test.code, test.text)
			}
		})
	}
}

// answering returns the address of a server that reads some of the first request and answers.
func answering(t *testing.T, answer []byte) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return // the test has ended
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil {
			_, _ = conn.Write(answer)
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	return listener.Addr().String()
}

// TestProtobuf_NeedsALength: bare messages have none.
func TestProtobuf_NeedsALength(t *testing.T) {
	client := dialAny(t, fulmar.ClientConfig{Target: "127.0.0.1:1", Protocol: fulmar.Bare})
	request, reply := slices.Clone(hi), fulmar.Raw(nil)
	e := asError(t, client.Call(t.Context(), protobufMethod(t, "m", false), &request, &reply))
	if e.Code() != fulmar.InvalidArgument || e.Phase() != fulmar.PhaseEncode || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Message(), "use framed or TTHeader") {
		t.Errorf("got %v", e)
	}
	config := fulmar.ClientConfig{Target: "127.0.0.1:1", Protocol: fulmar.KitexProtobuf}
	if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "RawProtobufMethod") {
		t.Errorf("a client with that protocol: %v", err)
	}
	if err := (fulmar.ServerConfig{Protocols: []fulmar.Protocol{fulmar.KitexProtobuf}}).Validate(); err != nil {
		t.Errorf("a server with that protocol: %v", err)
	}
}
