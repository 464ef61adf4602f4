package proxied_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/streamed"
)

// chorus implements the generated service as the handler of Kitex's server does.
type chorus struct{ seen chan string }

var _ streamed.StreamsServer = (*chorus)(nil)

// begin sends the header that all methods of Kitex's server send.
func begin(stream fulmar.ServerStream) error {
	call, _ := fulmar.CallFrom(stream.Context())
	trace, _ := call.Metadata().Persistent("TRACE")
	return stream.SendHeader(map[string]string{"trace": trace})
}

func (c *chorus) Chat(stream fulmar.BidiStreamingServer[streamed.Note, streamed.Note]) error {
	if err := begin(stream); err != nil {
		return err
	}
	count := 0
	for note, err := range stream.All() {
		if err != nil {
			return err
		}
		count++
		if err := stream.Send(&streamed.Note{Value: "you said " + note.Value}); err != nil {
			return err
		}
	}
	return fulmar.SetReplyTrailer(stream.Context(), "count", strconv.Itoa(count))
}

func (c *chorus) List(note *streamed.Note, stream fulmar.ServerStreamingServer[streamed.Note]) error {
	if err := begin(stream); err != nil {
		return err
	}
	count, err := strconv.Atoi(note.Value)
	for i := 0; i < count && err == nil; i++ {
		err = stream.Send(&streamed.Note{Value: strconv.Itoa(i)})
	}
	return err
}

func (c *chorus) Collect(stream fulmar.ClientStreamingServer[streamed.Note, streamed.Note]) error {
	if err := begin(stream); err != nil {
		return err
	}
	var all []string
	for note, err := range stream.All() {
		if err != nil {
			return err
		}
		all = append(all, note.Value)
	}
	return stream.SendAndClose(&streamed.Note{Value: strings.Join(all, "+")})
}

func (c *chorus) Fail(stream fulmar.BidiStreamingServer[streamed.Note, streamed.Note]) error {
	return errors.Join(begin(stream), errors.New("no such stream"))
}

func (c *chorus) Business(stream fulmar.BidiStreamingServer[streamed.Note, streamed.Note]) error {
	if err := begin(stream); err != nil {
		return err
	}
	return fulmar.NewBusinessError(1001, "not today", map[string]string{"left": "3"})
}

func (c *chorus) Hang(stream fulmar.BidiStreamingServer[streamed.Note, streamed.Note]) error {
	if err := begin(stream); err != nil {
		return err
	}
	_, err := stream.Recv()
	c.seen <- err.Error()
	return err
}

func (c *chorus) Seen(_ *streamed.Note, stream fulmar.ServerStreamingServer[streamed.Note]) error {
	return stream.Send(&streamed.Note{Value: <-c.seen})
}

// TestStreamed_ClientOfKitex calls streams that fulmar gen has made of a definition.
func TestStreamed_ClientOfKitex(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	service := &chorus{seen: make(chan string, 1)}
	streamed.RegisterStreamsServer(server, service)
	bound, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	compare(t, outcomes(t, "streams-client", bound.String()), []string{
		`{"Case":"chat","Reply":"you said a,you said b","Back":"map[trace:1] \u003cnil\u003e2\u003cnil\u003e"}`,
		`{"Case":"list","Reply":"0,1,2","Back":"map[trace:1] \u003cnil\u003estream is closed"}`,
		`{"Case":"collect","Reply":"a+b","Back":"map[trace:1] \u003cnil\u003estream is closed"}`,
		`{"Case":"fail","Text":"local: [ttstream error, code=12001] [client-side stream] no such stream","Back":"map[trace:1] \u003cnil\u003estream is closed"}`,
		`{"Case":"business","Status":1001,"Message":"not today","Extra":{"left":"3"},"Back":"map[trace:1] \u003cnil\u003e\u003cnil\u003e"}`,
		`{"Case":"hang","Text":"local: [ttstream error, code=12007] [client-side stream] user code invoking stream RPC with context processed by context.WithCancel or context.WithTimeout, then invoking cancel() actively"}`,
	})
	if seen := <-service.seen; !strings.Contains(seen, "the caller has gone") {
		t.Errorf("the handler of hang was told %q", seen)
	}
}

// TestStreamed_ServerOfKitex is called by a client that fulmar gen has made, several times on
// the same connection.
func TestStreamed_ServerOfKitex(t *testing.T) {
	api := streamed.NewStreamsClient(dial(t, startServer(t, "streams-server"), fulmar.TTHeader))
	ctx := fulmar.WithPersistent(t.Context(), "TRACE", "1")
	for range 2 {
		t.Run("chat", func(t *testing.T) { chats(t, ctx, api) })
		t.Run("one way", func(t *testing.T) { oneWay(t, ctx, api) })
		t.Run("errors", func(t *testing.T) { fails(t, ctx, api) })
		t.Run("cancel", func(t *testing.T) { cancels(t, ctx, api) })
	}
}

func chats(t *testing.T, ctx context.Context, api streamed.StreamsClient) {
	stream, err := api.Chat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", strings.Repeat("b", 1<<20), ""} {
		if err := stream.Send(&streamed.Note{Value: text}); err != nil {
			t.Fatal(err)
		}
		if got, err := stream.Recv(); err != nil || got.Value != "you said "+text {
			t.Fatalf("%d bytes come back as %v, %v", len(text), got, err)
		}
	}
	if header, err := stream.Header(); err != nil || header["trace"] != "1" {
		t.Errorf("header %v, %v", header, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
	if trailer := stream.Trailer(); trailer["count"] != "3" {
		t.Errorf("trailer %v", trailer)
	}
}

func oneWay(t *testing.T, ctx context.Context, api streamed.StreamsClient) {
	list, err := api.List(ctx, &streamed.Note{Value: "3"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for note, err := range list.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, note.Value)
	}
	if strings.Join(all, ",") != "0,1,2" {
		t.Errorf("list is %q", all)
	}
	collect, err := api.Collect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b"} {
		if err := collect.Send(&streamed.Note{Value: text}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := collect.CloseAndRecv(); err != nil || got.Value != "a+b" {
		t.Errorf("collect is %v, %v", got, err)
	}
}

func fails(t *testing.T, ctx context.Context, api streamed.StreamsClient) {
	stream, err := api.Fail(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err == nil || !strings.Contains(err.Error(), "no such stream") {
		t.Errorf("fail ends with %v", err)
	}
	if stream, err = api.Business(ctx); err != nil {
		t.Fatal(err)
	}
	var business *fulmar.BusinessError
	if _, err := stream.Recv(); !errors.As(err, &business) || business.Status() != 1001 || business.Message() != "not today" || business.Extra()["left"] != "3" {
		t.Errorf("business ends with %v", err)
	}
}

func cancels(t *testing.T, ctx context.Context, api streamed.StreamsClient) {
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := api.Hang(stopped)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("hang ends with %v", err)
	}
	seen, err := api.Seen(ctx, &streamed.Note{})
	if err != nil {
		t.Fatal(err)
	}
	if note, err := seen.Recv(); err != nil || !strings.Contains(note.Value, "12007") {
		t.Errorf("the handler of Kitex was told %v, %v", note, err)
	}
	if _, err := seen.Recv(); err != io.EOF {
		t.Errorf("seen ends with %v", err)
	}
}
