package proxied_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/gopkg/protocol/thrift"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/remote/trans/ttstream"
	"github.com/cloudwego/kitex/pkg/serviceinfo"
	"github.com/cloudwego/kitex/pkg/streaming"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"
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

// streams describes a service of which each method is a stream.
func streams() *serviceinfo.ServiceInfo {
	info := &serviceinfo.ServiceInfo{
		ServiceName: "Streams", HandlerType: (*any)(nil), PayloadCodec: serviceinfo.Thrift,
		Methods: map[string]serviceinfo.MethodInfo{}, Extra: map[string]any{},
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
		newText := func() any { return new(note) }
		info.Methods[name] = serviceinfo.NewMethodInfo(handle, newText, newText, false, serviceinfo.WithStreamingMode(mode))
	}
	return info
}

// streamer is the handler of the service. seen is how the method hang ended.
type streamer struct{ seen chan string }

func (s *streamer) serve(ctx context.Context, method string, stream streaming.ServerStream) error {
	trace, _ := metainfo.GetPersistentValue(ctx, "TRACE")
	if err := stream.SetHeader(streaming.Header{"trace": trace}); err != nil {
		return err
	}
	var all []string
	next := func() error {
		message := new(note)
		err := stream.RecvMsg(ctx, message)
		all = append(all, message.value)
		return err
	}
	send := func(text string) error { return stream.SendMsg(ctx, &note{text}) }
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

func serveStreams([]string) error {
	listener, err := listen()
	if err != nil {
		return err
	}
	peer := server.NewServer(serverOptions(listener)...)
	if err := peer.RegisterService(streams(), &streamer{seen: make(chan string, 1)}); err != nil {
		return err
	}
	return peer.Run()
}

// callStreams calls each method of the server at an address.
func callStreams(arguments []string) error {
	caller, err := client.NewClient(streams(), append(clientOptions(arguments[0], ""), client.WithDestService("proxied.server"),
		client.WithTransportProtocol(transport.TTHeaderStreaming),
		client.WithTTHeaderStreamingOptions(client.WithTTHeaderStreamingTransportOptions(
			ttstream.WithClientMuxConnPool(ttstream.MuxConnConfig{PoolSize: 1}))))...)
	if err != nil {
		return err
	}
	for _, each := range []struct {
		method string
		send   []string
	}{
		{"chat", []string{"a", "b"}}, {"list", []string{"3"}}, {"collect", []string{"a", "b"}}, {"fail", nil}, {"business", nil}, {"hang", nil},
	} {
		if err := callStream(caller.(client.Streaming), each.method, each.send); err != nil {
			return err
		}
	}
	return nil
}

// callStream sends, half-closes and receives until the end, but for the method hang, of
// which it cancels the context.
func callStream(caller client.Streaming, method string, send []string) error {
	ctx, cancel := context.WithCancel(metainfo.WithPersistentValue(context.Background(), "TRACE", "1"))
	defer cancel()
	stream, err := caller.StreamX(ctx, method)
	if err != nil {
		return err
	}
	for _, text := range send {
		if err := stream.SendMsg(ctx, &note{text}); err != nil {
			return err
		}
	}
	o := outcome{Case: method}
	if method == "hang" {
		if _, err := stream.Header(); err != nil {
			return err
		}
		cancel()
	} else if err := stream.CloseSend(ctx); err != nil {
		return err
	}
	var got []string
	for {
		message := new(note)
		if err = stream.RecvMsg(ctx, message); err != nil {
			break
		}
		got = append(got, message.value)
	}
	o.Reply = strings.Join(got, ",")
	if !errors.Is(err, io.EOF) {
		explain(&o, err)
	}
	if method != "hang" {
		header, headerErr := stream.Header()
		trailer, trailerErr := stream.Trailer()
		o.Back = fmt.Sprint(header, headerErr, trailer["count"], trailerErr)
	}
	return tell(o)
}
