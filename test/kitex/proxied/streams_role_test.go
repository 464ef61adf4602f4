package proxied_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/gopkg/protocol/thrift"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/remote/trans/ttstream"
	"github.com/cloudwego/kitex/pkg/serviceinfo"
	"github.com/cloudwego/kitex/pkg/streaming"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// note is a message {1: string} as Kitex's generated code would hold it.
type note struct{ value string }

var _ thrift.FastCodec = (*note)(nil)

func (n *note) BLength() int { return len(textStruct(1, n.value)) }

func (n *note) FastWriteNocopy(b []byte, _ thrift.NocopyWriter) int {
	return copy(b, textStruct(1, n.value))
}

func (n *note) FastRead(b []byte) (int, error) {
	if len(b) < 8 || len(b) != 8+int(binary.BigEndian.Uint32(b[3:])) {
		return 0, fmt.Errorf("no note: % x", b)
	}
	n.value = string(b[7 : len(b)-1])
	return len(b), nil
}

// wrapped is a struct with a note as its field 1, or 0: the arguments or the result of the
// method echo, which are the messages of a call in gRPC with one each way.
type wrapped struct {
	field byte
	note
}

func (w *wrapped) BLength() int { return 4 + w.note.BLength() }

func (w *wrapped) FastWriteNocopy(b []byte, _ thrift.NocopyWriter) int {
	n := copy(b, []byte{12, 0, w.field})
	n += copy(b[n:], textStruct(1, w.value))
	return n + copy(b[n:], []byte{0})
}

func (w *wrapped) FastRead(b []byte) (int, error) {
	if len(b) < 4 || b[0] != 12 || b[2] != w.field {
		return 0, fmt.Errorf("no struct with a note: % x", b)
	}
	_, err := w.note.FastRead(b[3 : len(b)-1])
	return len(b), err
}

// payload is how the streams of Kitex are encoded.
type payload struct {
	codec serviceinfo.PayloadCodec
	// new returns a message, text and message read and make one.
	new     func() any
	text    func(message any) string
	message func(text string) any
}

// payloads by name. Kitex encodes Protobuf in gRPC only: EncodePayload in
// pkg/remote/trans/ttstream/frame.go of 0.16.3 takes Thrift.
func payloads() map[string]payload {
	return map[string]payload{
		"thrift": {
			serviceinfo.Thrift,
			func() any { return new(note) },
			func(message any) string { return message.(*note).value },
			func(text string) any { return &note{text} },
		},
		"protobuf": {
			serviceinfo.Protobuf,
			func() any { return new(wrapperspb.StringValue) },
			func(message any) string { return message.(*wrapperspb.StringValue).GetValue() },
			func(text string) any { return wrapperspb.String(text) },
		},
	}
}

// streams describes a service of which each method is a stream, but for echo.
func (p payload) streams() *serviceinfo.ServiceInfo {
	info := &serviceinfo.ServiceInfo{
		ServiceName: "Streams", HandlerType: (*any)(nil), PayloadCodec: p.codec,
		Methods: map[string]serviceinfo.MethodInfo{}, Extra: map[string]any{"PackageName": ""},
	}
	if p.codec == serviceinfo.Protobuf {
		info.Extra["PackageName"] = "test"
	}
	modes := map[string]serviceinfo.StreamingMode{
		"chat": serviceinfo.StreamingBidirectional, "list": serviceinfo.StreamingServer, "collect": serviceinfo.StreamingClient,
		"fail": serviceinfo.StreamingBidirectional, "business": serviceinfo.StreamingBidirectional,
		"hang": serviceinfo.StreamingBidirectional, "seen": serviceinfo.StreamingServer,
	}
	for name, mode := range modes {
		handle := func(ctx context.Context, handler, args, _ any) error {
			stream, err := streaming.GetServerStreamFromArg(args)
			if err != nil {
				return err
			}
			return handler.(*streamer).serve(ctx, name, stream)
		}
		info.Methods[name] = serviceinfo.NewMethodInfo(handle, p.new, p.new, false, serviceinfo.WithStreamingMode(mode))
	}
	// Over gRPC a method with one message each way is a stream to Kitex as well, but only if
	// its definition says streaming.mode = "unary": without that its server panics.
	handle := func(ctx context.Context, _, args, _ any) error {
		stream, err := streaming.GetServerStreamFromArg(args)
		if err != nil {
			return err
		}
		request, reply := p.call("")
		if err := stream.RecvMsg(ctx, request); err != nil {
			return err
		}
		if text := p.textOf(request); text != "fail" {
			return stream.SendMsg(ctx, p.filled(reply, "echo of "+text))
		}
		return errors.New("no such note")
	}
	newRequest, newReply := func() any { request, _ := p.call(""); return request }, func() any { _, reply := p.call(""); return reply }
	info.Methods["echo"] = serviceinfo.NewMethodInfo(handle, newRequest, newReply, false, serviceinfo.WithStreamingMode(serviceinfo.StreamingUnary))
	return info
}

// call returns the request of a call of echo, and an empty reply.
func (p payload) call(text string) (request, reply any) {
	if p.codec == serviceinfo.Protobuf {
		return p.message(text), p.new()
	}
	return &wrapped{1, note{text}}, &wrapped{}
}

// textOf and filled are text and message for echo.
func (p payload) textOf(message any) string {
	if w, ok := message.(*wrapped); ok {
		return w.value
	}
	return p.text(message)
}

func (p payload) filled(reply any, text string) any {
	if w, ok := reply.(*wrapped); ok {
		w.value = text
		return w
	}
	return p.message(text)
}

// streamer is the handler of the service. seen is how the method hang ended.
type streamer struct {
	payload
	seen chan string
}

func (s *streamer) serve(ctx context.Context, method string, stream streaming.ServerStream) error {
	trace, _ := metainfo.GetPersistentValue(ctx, "TRACE")
	if err := stream.SetHeader(streaming.Header{"trace": trace}); err != nil {
		return err
	}
	var all []string
	next := func() error {
		message := s.new()
		err := stream.RecvMsg(ctx, message)
		all = append(all, s.text(message))
		return err
	}
	send := func(text string) error { return stream.SendMsg(ctx, s.message(text)) }
	switch method {
	case "fail":
		return errors.New("no such stream")
	case "business":
		return kerrors.NewBizStatusErrorWithExtra(1001, "not today", map[string]string{"left": "3"})
	case "chat":
		err := next()
		for ; err == nil; err = next() {
			if err := send("you said " + all[len(all)-1]); err != nil {
				return err
			}
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		return stream.SetTrailer(streaming.Trailer{"count": strconv.Itoa(len(all) - 1)})
	case "collect":
		err := next()
		for ; err == nil; err = next() {
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		return send(strings.Join(all[:len(all)-1], "+"))
	case "hang":
		if err := stream.SendHeader(streaming.Header{}); err != nil {
			return err
		}
		err := next()
		s.seen <- err.Error()
		return err
	case "seen":
		return send(<-s.seen)
	}
	if err := next(); err != nil {
		return err
	}
	count, err := strconv.Atoi(all[0])
	for i := 0; i < count && err == nil; i++ {
		err = send(strconv.Itoa(i))
	}
	return err
}

// serveStreams takes the name of a payload.
func serveStreams(arguments []string) error {
	listener, err := listen()
	if err != nil {
		return err
	}
	p := payloads()[arguments[0]]
	peer := server.NewServer(append(serverOptions(listener), server.WithMetaHandler(transmeta.ServerHTTP2Handler))...)
	if err := peer.RegisterService(p.streams(), &streamer{payload: p, seen: make(chan string, 1)}); err != nil {
		return err
	}
	return peer.Run()
}

// callStreams calls each method of the server at an address, with a transport and a payload,
// and with one word more one that is late.
func callStreams(arguments []string) error {
	p := payloads()[arguments[2]]
	options := append(clientOptions(arguments[0], ""), client.WithDestService("proxied.server"))
	inGRPC := arguments[1] == "grpc"
	if inGRPC {
		options = append(options, client.WithTransportProtocol(transport.GRPC), client.WithMetaHandler(transmeta.ClientHTTP2Handler))
	} else {
		options = append(options, client.WithTransportProtocol(transport.TTHeaderStreaming),
			client.WithTTHeaderStreamingOptions(client.WithTTHeaderStreamingTransportOptions(
				ttstream.WithClientMuxConnPool(ttstream.MuxConnConfig{PoolSize: 1}))))
	}
	caller, err := client.NewClient(p.streams(), options...)
	if err != nil {
		return err
	}
	for _, text := range []string{"a", strings.Repeat("b", 1<<20), "fail"} {
		if !inGRPC {
			break
		}
		request, reply := p.call(text)
		o := outcome{Case: "echo"}
		if err := caller.Call(context.Background(), "echo", request, reply); err != nil {
			explain(&o, err)
		} else if o.Reply = p.textOf(reply); len(o.Reply) > 100 {
			o.Reply = strconv.Itoa(len(o.Reply))
		}
		if err := tell(o); err != nil {
			return err
		}
	}
	for _, each := range []struct {
		method string
		send   []string
	}{
		{"chat", []string{"a", "b"}}, {"list", []string{"3"}}, {"collect", []string{"a", "b"}}, {"fail", nil}, {"business", nil}, {"hang", nil}, {"late", nil},
	} {
		if each.method == "late" && len(arguments) < 4 {
			continue
		}
		if err := p.callStream(caller.(client.Streaming), each.method, each.send); err != nil {
			return err
		}
	}
	return nil
}

// callStream sends, half-closes and receives until the end, but for the method hang, of
// which it cancels the context; "late" is the same method with a deadline.
func (p payload) callStream(caller client.Streaming, method string, send []string) error {
	ctx, cancel := context.WithCancel(metainfo.WithPersistentValue(context.Background(), "TRACE", "1"))
	defer cancel()
	o := outcome{Case: method}
	hangs := method == "hang" || method == "late"
	if method == "late" {
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		method = "hang"
	}
	stream, err := caller.StreamX(ctx, method)
	if err != nil {
		return err
	}
	for _, text := range send {
		if err := stream.SendMsg(ctx, p.message(text)); err != nil {
			return err
		}
	}
	if hangs {
		if _, err := stream.Header(); err != nil {
			return err
		}
		if o.Case == "hang" {
			cancel()
		}
	} else if err := stream.CloseSend(ctx); err != nil {
		return err
	}
	var got []string
	for {
		message := p.new()
		if err = stream.RecvMsg(ctx, message); err != nil {
			break
		}
		got = append(got, p.text(message))
	}
	o.Reply = strings.Join(got, ",")
	if !errors.Is(err, io.EOF) {
		explain(&o, err)
		if o.Case == "late" {
			// Both sides have a clock, and the text is of who is first.
			o.Text, _, _ = strings.Cut(o.Text, " desc")
			o.Text, _, _ = strings.Cut(o.Text, " [client-side stream]")
		}
	}
	if !hangs {
		header, headerErr := stream.Header()
		trailer, trailerErr := stream.Trailer()
		o.Back = fmt.Sprint(header["trace"], headerErr, trailer["count"], trailerErr)
	}
	return tell(o)
}
