package proxied_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/streamed"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/streamedpb"
)

// message is what goes through the streams, a pointer to it.
type message interface {
	streamed.Note | wrapperspb.StringValue
}

func textOf[T message](m *T) string {
	if note, ok := any(m).(*streamed.Note); ok {
		return note.Value
	}
	return any(m).(*wrapperspb.StringValue).GetValue()
}

func withText[T message](text string) *T {
	m := new(T)
	switch m := any(m).(type) {
	case *streamed.Note:
		m.Value = text
	case *wrapperspb.StringValue:
		m.Value = text
	}
	return m
}

// chorus implements the generated services as the handler of Kitex's server does.
type chorus[T message] struct{ seen chan string }

var (
	_ streamed.StreamsServer   = (*chorus[streamed.Note])(nil)
	_ streamedpb.StreamsServer = (*chorus[wrapperspb.StringValue])(nil)
)

// begin sends the header that all methods of Kitex's server send.
func begin(stream fulmar.ServerStream) error {
	call, _ := fulmar.CallFrom(stream.Context())
	trace, _ := call.Metadata().Persistent("TRACE")
	return stream.SendHeader(map[string]string{"trace": trace})
}

func (c *chorus[T]) Echo(_ context.Context, m *T) (*T, error) {
	if textOf(m) == "fail" {
		return nil, errors.New("no such note")
	}
	return withText[T]("echo of " + textOf(m)), nil
}

func (c *chorus[T]) Chat(stream fulmar.BidiStreamingServer[T, T]) error {
	if err := begin(stream); err != nil {
		return err
	}
	count := 0
	for m, err := range stream.All() {
		if err != nil {
			return err
		}
		count++
		if err := stream.Send(withText[T]("you said " + textOf(m))); err != nil {
			return err
		}
	}
	return fulmar.SetReplyTrailer(stream.Context(), "count", strconv.Itoa(count))
}

func (c *chorus[T]) List(m *T, stream fulmar.ServerStreamingServer[T]) error {
	if err := begin(stream); err != nil {
		return err
	}
	count, err := strconv.Atoi(textOf(m))
	for i := 0; i < count && err == nil; i++ {
		err = stream.Send(withText[T](strconv.Itoa(i)))
	}
	return err
}

func (c *chorus[T]) Collect(stream fulmar.ClientStreamingServer[T, T]) error {
	if err := begin(stream); err != nil {
		return err
	}
	var all []string
	for m, err := range stream.All() {
		if err != nil {
			return err
		}
		all = append(all, textOf(m))
	}
	return stream.SendAndClose(withText[T](strings.Join(all, "+")))
}

func (c *chorus[T]) Fail(stream fulmar.BidiStreamingServer[T, T]) error {
	return errors.Join(begin(stream), errors.New("no such stream"))
}

func (c *chorus[T]) Business(stream fulmar.BidiStreamingServer[T, T]) error {
	if err := begin(stream); err != nil {
		return err
	}
	return fulmar.NewBusinessError(1001, "not today", map[string]string{"left": "3"})
}

func (c *chorus[T]) Hang(stream fulmar.BidiStreamingServer[T, T]) error {
	if err := begin(stream); err != nil {
		return err
	}
	_, err := stream.Recv()
	c.seen <- err.Error()
	return err
}

func (c *chorus[T]) Seen(_ *T, stream fulmar.ServerStreamingServer[T]) error {
	return stream.Send(withText[T](<-c.seen))
}

// streamCarrier is how Kitex carries streams.
type streamCarrier struct {
	transport, payload string
	protocol           fulmar.Protocol
}

var streamCarriers = []streamCarrier{
	{"ttheader", "thrift", fulmar.TTHeader},
	{"grpc", "thrift", fulmar.GRPC},
	{"grpc", "protobuf", fulmar.GRPC},
}

func (c streamCarrier) String() string { return c.transport + ", " + c.payload }

// TestStreamed_ClientOfKitex calls streams that fulmar gen has made of definitions.
func TestStreamed_ClientOfKitex(t *testing.T) {
	for _, carrier := range streamCarriers {
		t.Run(carrier.String(), func(t *testing.T) {
			seen := make(chan string, 2)
			address := serveAny(t, fulmar.ServerConfig{}, func(server *fulmar.Server) {
				streamed.RegisterStreamsServer(server, &chorus[streamed.Note]{seen})
				streamedpb.RegisterStreamsServer(server, &chorus[wrapperspb.StringValue]{seen})
			})
			want := []string{
				`{"Case":"chat","Reply":"you said a,you said b","Back":"1\u003cnil\u003e2\u003cnil\u003e"}`,
				`{"Case":"list","Reply":"0,1,2","Back":"1\u003cnil\u003estream is closed"}`,
				`{"Case":"collect","Reply":"a+b","Back":"1\u003cnil\u003estream is closed"}`,
				`{"Case":"fail","Text":"local: [ttstream error, code=12001] [client-side stream] no such stream","Back":"1\u003cnil\u003estream is closed"}`,
				`{"Case":"business","Status":1001,"Message":"not today","Extra":{"left":"3"},"Back":"1\u003cnil\u003e\u003cnil\u003e"}`,
				`{"Case":"hang","Text":"local: [ttstream error, code=12007] [client-side stream] user code invoking stream RPC with context processed by context.WithCancel or context.WithTimeout, then invoking cancel() actively"}`,
				`{"Case":"late","Text":"local: [ttstream error, code=12015]"}`,
			}
			if carrier.transport == "grpc" {
				want = []string{
					`{"Case":"echo","Reply":"echo of a"}`,
					`{"Case":"echo","Reply":"1048584"}`,
					`{"Case":"echo","Text":"local: remote or network error: rpc error: code = 2 desc = no such note"}`,
					`{"Case":"chat","Reply":"you said a,you said b","Back":"1\u003cnil\u003e2\u003cnil\u003e"}`,
					`{"Case":"list","Reply":"0,1,2","Back":"1\u003cnil\u003e\u003cnil\u003e"}`,
					`{"Case":"collect","Reply":"a+b","Back":"1\u003cnil\u003e\u003cnil\u003e"}`,
					`{"Case":"fail","Text":"local: rpc error: code = 2 desc = no such stream","Back":"1\u003cnil\u003e\u003cnil\u003e"}`,
					`{"Case":"business","Status":1001,"Message":"not today","Extra":{"left":"3"},"Back":"1\u003cnil\u003e\u003cnil\u003e"}`,
					`{"Case":"hang","Text":"local: rpc error: code = 1 desc = context canceled"}`,
					`{"Case":"late","Text":"local: rpc error: code = 4"}`,
				}
			}
			compare(t, outcomes(t, "streams-client", address, carrier.transport, carrier.payload, "late"), want)
			if told := <-seen; !strings.Contains(told, "the caller has gone") {
				t.Errorf("the handler of hang was told %q", told)
			}
			// Both sides have a clock, and who is first is chance.
			if told := <-seen; !strings.Contains(told, "the caller has gone") && !strings.Contains(told, "the call's time is over") {
				t.Errorf("the handler of hang with a deadline was told %q", told)
			}
		})
	}
}

// streamsClient is what the generated clients have in common.
type streamsClient[T message] interface {
	Echo(ctx context.Context, m *T, options ...fulmar.CallOption) (*T, error)
	Chat(ctx context.Context, options ...fulmar.CallOption) (fulmar.BidiStreamingClient[T, T], error)
	List(ctx context.Context, m *T, options ...fulmar.CallOption) (fulmar.ServerStreamingClient[T], error)
	Collect(ctx context.Context, options ...fulmar.CallOption) (fulmar.ClientStreamingClient[T, T], error)
	Fail(ctx context.Context, options ...fulmar.CallOption) (fulmar.BidiStreamingClient[T, T], error)
	Business(ctx context.Context, options ...fulmar.CallOption) (fulmar.BidiStreamingClient[T, T], error)
	Hang(ctx context.Context, options ...fulmar.CallOption) (fulmar.BidiStreamingClient[T, T], error)
	Seen(ctx context.Context, m *T, options ...fulmar.CallOption) (fulmar.ServerStreamingClient[T], error)
}

// TestStreamed_ServerOfKitex is called by clients that fulmar gen has made, several times on
// the same connection, and through a proxy that knows neither service.
func TestStreamed_ServerOfKitex(t *testing.T) {
	for _, carrier := range streamCarriers {
		t.Run(carrier.String(), func(t *testing.T) {
			direct := dial(t, startServer(t, "streams-server", carrier.payload), carrier.protocol)
			proxy := dial(t, serve(t, fulmar.ServerConfig{UnknownStreamHandler: fulmar.ForwardStreams(direct)}), carrier.protocol)
			for way, client := range map[string]*fulmar.Client{"direct": direct, "through a proxy": proxy} {
				t.Run(way, func(t *testing.T) {
					if carrier.payload == "protobuf" {
						callsKitex(t, carrier, streamedpb.NewStreamsClient(client))
					} else {
						callsKitex(t, carrier, streamed.NewStreamsClient(client))
					}
				})
			}
		})
	}
}

func callsKitex[T message](t *testing.T, carrier streamCarrier, api streamsClient[T]) {
	ctx := fulmar.WithPersistent(t.Context(), "TRACE", "1")
	for range 2 {
		t.Run("chat", func(t *testing.T) { chats(t, ctx, api) })
		t.Run("one way", func(t *testing.T) { oneWay(t, ctx, api) })
		t.Run("errors", func(t *testing.T) { fails(t, ctx, api) })
		t.Run("end", func(t *testing.T) { ends(t, ctx, carrier, api) })
		if carrier.transport == "grpc" {
			t.Run("one message", func(t *testing.T) { echoes(t, ctx, api) })
		}
	}
}

func echoes[T message](t *testing.T, ctx context.Context, api streamsClient[T]) {
	for _, text := range []string{"", "a", strings.Repeat("b", 1<<20)} {
		if got, err := api.Echo(ctx, withText[T](text)); err != nil || textOf(got) != "echo of "+text {
			t.Errorf("%d bytes: %v, %v", len(text), got, err)
		}
	}
	if _, err := api.Echo(ctx, withText[T]("fail")); err == nil || !strings.Contains(err.Error(), "no such note") {
		t.Errorf("fail ends with %v", err)
	}
}

func chats[T message](t *testing.T, ctx context.Context, api streamsClient[T]) {
	stream, err := api.Chat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", strings.Repeat("b", 1<<20), ""} {
		if err := stream.Send(withText[T](text)); err != nil {
			t.Fatal(err)
		}
		if got, err := stream.Recv(); err != nil || textOf(got) != "you said "+text {
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

func oneWay[T message](t *testing.T, ctx context.Context, api streamsClient[T]) {
	list, err := api.List(ctx, withText[T]("3"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for m, err := range list.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, textOf(m))
	}
	if strings.Join(all, ",") != "0,1,2" {
		t.Errorf("list is %q", all)
	}
	collect, err := api.Collect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b"} {
		if err := collect.Send(withText[T](text)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := collect.CloseAndRecv(); err != nil || textOf(got) != "a+b" {
		t.Errorf("collect is %v, %v", got, err)
	}
}

func fails[T message](t *testing.T, ctx context.Context, api streamsClient[T]) {
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

// ends ends calls early: one is canceled, one has too little time.
func ends[T message](t *testing.T, ctx context.Context, carrier streamCarrier, api streamsClient[T]) {
	told := map[string]string{"ttheader": "12007", "grpc": "error code: CANCEL"}[carrier.transport]
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
	saw(t, ctx, api, told)
	if stream, err = api.Hang(ctx, fulmar.Timeout(300*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
		t.Errorf("hang with a deadline ends with %v", err)
	}
	// It is told of the end of its time, or by somebody whose clock was faster.
	saw(t, ctx, api, map[string]string{"ttheader": "code=120", "grpc": "code = "}[carrier.transport])
}

// saw asks what the handler of hang was told at last.
func saw[T message](t *testing.T, ctx context.Context, api streamsClient[T], want string) {
	t.Helper()
	seen, err := api.Seen(ctx, new(T))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := seen.Recv(); err != nil || !strings.Contains(textOf(m), want) {
		t.Errorf("the handler of Kitex was told %v, %v", m, err)
	}
	if _, err := seen.Recv(); err != io.EOF {
		t.Errorf("seen ends with %v", err)
	}
}
