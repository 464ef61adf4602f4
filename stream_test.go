package fulmar_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// feed implements testservice.FeedServer with functions.
type feed struct {
	list func(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error
	fill func(stream fulmar.ClientStreamingServer[testservice.Item, testservice.Item]) error
	swap func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error
}

var _ testservice.FeedServer = (*feed)(nil)

// List implements FeedServer: as many items as are asked for.
func (f *feed) List(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
	if f.list != nil {
		return f.list(item, stream)
	}
	for i := range item.Count {
		if err := stream.Send(&testservice.Item{Name: item.Name, Count: i}); err != nil {
			return err
		}
	}
	return nil
}

// Fill implements FeedServer: how many there are of all items.
func (f *feed) Fill(stream fulmar.ClientStreamingServer[testservice.Item, testservice.Item]) error {
	if f.fill != nil {
		return f.fill(stream)
	}
	sum := &testservice.Item{Name: "sum", Count: 0}
	for item, err := range stream.All() {
		if err != nil {
			return err
		}
		sum.Count += item.Count
	}
	return stream.SendAndClose(sum)
}

// Swap implements FeedServer: each item comes back.
func (f *feed) Swap(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
	if f.swap != nil {
		return f.swap(stream)
	}
	for {
		item, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(item); err != nil {
			return err
		}
	}
}

// streaming is a server and a client for streams.
type streaming struct {
	way     string
	network *simnet.Network
	api     testservice.FeedClient
	client  *fulmar.Client
	server  *fulmar.Server
	stop    func() error
}

// streamingWays are how streams come to a server.
var (
	directWays    = []string{"grpc", "ttheader", "local"}
	streamingWays = append(slices.Clone(directWays), "grpc through a proxy", "ttheader through a proxy")
)

// eachStreamingWay runs a test with virtual time for each way.
func eachStreamingWay(t *testing.T, service *feed, server fulmar.ServerConfig, client fulmar.ClientConfig, test func(t *testing.T, s *streaming)) {
	t.Helper()
	for _, way := range streamingWays {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newStreaming(t, way, service, server, client)) })
		})
	}
}

func newStreaming(t *testing.T, way string, service *feed, server fulmar.ServerConfig, client fulmar.ClientConfig) *streaming {
	t.Helper()
	return newStreamingOf(t, way, func(s *fulmar.Server) {
		testservice.RegisterFeedServer(s, service)
		testservice.RegisterCalculatorServer(s, streamAdder{})
	}, server, client)
}

// newStreamingOf serves what register registers, at its way.
func newStreamingOf(t *testing.T, way string, register func(*fulmar.Server), server fulmar.ServerConfig, client fulmar.ClientConfig) *streaming {
	t.Helper()
	if behind, proxied := strings.CutSuffix(way, " through a proxy"); proxied {
		plain := client
		plain.StreamInterceptors = nil
		back := newStreamingOf(t, behind, register, server, plain)
		return newStreamingOf(t, behind, func(*fulmar.Server) {}, fulmar.ServerConfig{
			UnknownHandler:       fulmar.Forward(back.client),
			UnknownStreamHandler: forwardAll(fulmar.ForwardStreams(back.client)),
		}, client)
	}
	network := simnet.New(simnet.Config{})
	s := &streaming{way: way, network: network}
	listener, err := network.Listen(simAddress)
	if err != nil {
		t.Fatal(err)
	}
	server.Logger = slog.New(slog.DiscardHandler)
	server.Listener = listener
	if s.server, err = fulmar.NewServer(server); err != nil {
		t.Fatal(err)
	}
	register(s.server)
	if _, err := s.server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx) }()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	switch way {
	case "local":
		client.Local = s.server
	case "grpc":
		client.Target, client.Dial, client.Protocol = simAddress, network.Dial, fulmar.GRPC
	default:
		client.Target, client.Dial, client.Protocol = simAddress, network.Dial, fulmar.TTHeader
	}
	if s.client, err = fulmar.NewClient(client); err != nil {
		t.Fatal(err)
	}
	s.api = testservice.NewFeedClient(s.client)
	t.Cleanup(func() {
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
		if err := s.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		synctest.Wait() // what was given back as the connections ended
		if left := s.server.Stats(); left.BufferedBytes != 0 {
			t.Errorf("a server that has ended holds %+v", left)
		}
	})
	return s
}

// forwardAll passes on the transient metadata too.
func forwardAll(forward func(context.Context, *fulmar.ServerMessages) error) func(context.Context, *fulmar.ServerMessages) error {
	return func(ctx context.Context, messages *fulmar.ServerMessages) error {
		call, _ := fulmar.CallFrom(ctx)
		for key, value := range call.Metadata().AllTransient() {
			ctx = fulmar.WithTransient(ctx, key, value)
		}
		return forward(ctx, messages)
	}
}

type streamAdder struct{}

// Add implements CalculatorServer.
func (streamAdder) Add(_ context.Context, left, right int32) (int32, error) { return left + right, nil }

func TestStreams_AllKinds(t *testing.T) {
	eachStreamingWay(t, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		list, err := s.api.List(t.Context(), &testservice.Item{Name: "n", Count: 1000})
		if err != nil {
			t.Fatal(err)
		}
		next := int32(0)
		for item, err := range list.All() {
			if err != nil || item.Name != "n" || item.Count != next {
				t.Fatalf("item %d: %v, %v", next, item, err)
			}
			next++
		}
		if next != 1000 {
			t.Errorf("%d items", next)
		}
		if _, err := list.Recv(); err != io.EOF {
			t.Errorf("behind the end: %v", err)
		}
		fill, err := s.api.Fill(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range int32(1000) {
			if err := fill.Send(&testservice.Item{Count: i}); err != nil {
				t.Fatal(err)
			}
		}
		if sum, err := fill.CloseAndRecv(); err != nil || sum.Count != 499500 {
			t.Errorf("%v, %v", sum, err)
		}
		swap, err := s.api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "a", strings.Repeat("long", 1<<18)} {
			if err := swap.Send(&testservice.Item{Name: name, Count: 3}); err != nil {
				t.Fatal(err)
			}
			if item, err := swap.Recv(); err != nil || item.Name != name || item.Count != 3 {
				t.Fatalf("%v", err)
			}
		}
		if err := swap.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := swap.Recv(); err != io.EOF {
			t.Errorf("end: %v", err)
		}
		if err := swap.Send(&testservice.Item{}); fulmar.CodeOf(err) != fulmar.Internal {
			t.Errorf("a late message: %v", err)
		}
	})
}

// TestStreams_Metadata: header and trailer, what the handler knows of its call, and what
// the caller gets of it.
func TestStreams_Metadata(t *testing.T) {
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		call, ok := fulmar.CallFrom(stream.Context())
		user, _ := call.Metadata().Persistent("USER")
		if !ok || call.Method() != "swap" || call.Service() != "Feed" || user != "ann" {
			t.Errorf("%+v, %q", call, user)
		}
		if err := stream.SendHeader(map[string]string{"fulmar-x": "1"}); err == nil {
			t.Error("a reserved key was sent")
		}
		if err := stream.SendHeader(map[string]string{"h": "1", "i": "2"}); err != nil {
			t.Error(err)
		}
		if err := stream.SendHeader(map[string]string{"late": "1"}); err == nil {
			t.Error("a second header was sent")
		}
		return fulmar.SetReplyMetadata(stream.Context(), "took", "7 ms")
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		var metadata map[string]string
		swap, err := s.api.Swap(fulmar.WithPersistent(t.Context(), "USER", "ann"), fulmar.ReceiveMetadata(&metadata))
		if err != nil {
			t.Fatal(err)
		}
		if header, err := swap.Header(); err != nil || !maps.Equal(header, map[string]string{"h": "1", "i": "2"}) {
			t.Errorf("header %q, %v", header, err)
		}
		if trailer := swap.Trailer(); trailer != nil {
			t.Errorf("a trailer in front of the end: %q", trailer)
		}
		if _, err := swap.Recv(); err != io.EOF {
			t.Error(err)
		}
		if trailer := swap.Trailer(); !maps.Equal(trailer, map[string]string{"took": "7 ms"}) || !maps.Equal(metadata, trailer) {
			t.Errorf("trailer %q, metadata %q", trailer, metadata)
		}
		if header, err := swap.Header(); err != nil || !maps.Equal(header, map[string]string{"h": "1", "i": "2"}) {
			t.Errorf("header behind the end: %q, %v", header, err)
		}
	})
}

// TestStreams_Errors: what a handler ends with is what its caller gets.
func TestStreams_Errors(t *testing.T) {
	service := &feed{list: func(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
		if item.Count > 0 {
			if err := stream.Send(&testservice.Item{Name: "first"}); err != nil {
				t.Error(err)
			}
		}
		switch item.Name {
		case "error":
			return fulmar.NewError(fulmar.NotFound, "not here")
		case "business":
			return fulmar.NewBusinessError(1001, "limit reached", map[string]string{"left": "10"})
		case "panic":
			panic("so it is")
		case "plain":
			return errors.New("plain")
		}
		return nil
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for _, count := range []int32{0, 1} {
			end := func(name string) error {
				list, err := s.api.List(t.Context(), &testservice.Item{Name: name, Count: count})
				if err != nil {
					t.Fatal(err)
				}
				for range count {
					if item, err := list.Recv(); err != nil || item.Name != "first" {
						t.Errorf("%s: %v, %v", name, item, err)
					}
				}
				_, err = list.Recv()
				if _, again := list.Recv(); again != err {
					t.Errorf("%s: ended with %v, and then with %v", name, err, again)
				}
				return err
			}
			failed := new(fulmar.Error)
			if err := end("error"); !errors.As(err, &failed) || failed.Code() != fulmar.NotFound || failed.Message() != "not here" ||
				failed.Executed() != fulmar.ExecutedYes || failed.Origin() != fulmar.OriginRemote || !strings.HasPrefix(err.Error(), "Feed.list: ") {
				t.Errorf("error: %v, executed %v, origin %v", err, failed.Executed(), failed.Origin())
			}
			business := new(fulmar.BusinessError)
			if err := end("business"); !errors.As(err, &business) || business.Status() != 1001 || business.Message() != "limit reached" || business.Extra()["left"] != "10" {
				t.Errorf("business error: %v", err)
			}
			if err := end("panic"); fulmar.CodeOf(err) != fulmar.Internal || strings.Contains(err.Error(), "so it is") {
				t.Errorf("panic: %v", err)
			}
			if err := end("plain"); fulmar.CodeOf(err) != fulmar.Unknown {
				t.Errorf("plain error: %v", err)
			}
			if err := end("fine"); err != io.EOF {
				t.Errorf("success: %v", err)
			}
		}
	})
}

// TestStreams_Cancel: whoever gives up, the other side learns it, and nothing is left.
func TestStreams_Cancel(t *testing.T) {
	told := make(chan error, 2)
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		_, err := stream.Recv()
		told <- err
		<-stream.Context().Done()
		told <- stream.Send(&testservice.Item{})
		return err
	}}
	give := map[string]func(ctx context.Context, cancel context.CancelFunc, swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item]){
		"context": func(_ context.Context, cancel context.CancelFunc, _ fulmar.BidiStreamingClient[testservice.Item, testservice.Item]) {
			cancel()
		},
		"Cancel": func(_ context.Context, _ context.CancelFunc, swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item]) {
			swap.Cancel()
		},
		"All": func(_ context.Context, _ context.CancelFunc, swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item]) {
			swap.SetRecvTimeout(time.Second)
			for _, err := range swap.All() {
				if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
					t.Errorf("a message in time: %v", err)
				}
				break
			}
		},
	}
	for name, giveUp := range give {
		t.Run(name, func(t *testing.T) {
			eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				swap, err := s.api.Swap(ctx)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				giveUp(ctx, cancel, swap)
				if _, err := swap.Recv(); fulmar.CodeOf(err) != fulmar.Canceled {
					t.Errorf("receiving: %v", err)
				}
				if err := swap.Send(&testservice.Item{}); err == nil {
					t.Error("a message was sent by somebody who has given up")
				}
				<-swap.Context().Done()
				for range 2 {
					if err := <-told; fulmar.CodeOf(err) != fulmar.Canceled {
						t.Errorf("the handler was told %v", err)
					}
				}
			})
		})
	}
}

// TestStreams_Deadline: it is that of all of the stream, on both sides.
func TestStreams_Deadline(t *testing.T) {
	told := make(chan error, 1)
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		if deadline, ok := stream.Context().Deadline(); !ok || time.Until(deadline) > time.Second {
			t.Errorf("deadline %v, %v", deadline, ok)
		}
		_, err := stream.Recv()
		told <- err
		return err
	}}
	// The limit of unary calls is not that of streams.
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: time.Millisecond}, func(t *testing.T, s *streaming) {
		start := time.Now()
		swap, err := s.api.Swap(t.Context(), fulmar.Timeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		_, err = swap.Recv()
		if fulmar.CodeOf(err) != fulmar.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := <-told; fulmar.CodeOf(err) != fulmar.DeadlineExceeded && fulmar.CodeOf(err) != fulmar.Canceled {
			t.Errorf("the handler was told %v", err)
		}
		if _, err := s.api.Swap(t.Context(), fulmar.Timeout(0)); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("no time at all: %v", err)
		}
	})
}

// TestStreams_RecvTimeout: a message may come later; that of the handler is its own.
func TestStreams_RecvTimeout(t *testing.T) {
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		stream.SetRecvTimeout(2 * time.Second)
		for range 2 {
			if _, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Errorf("the handler's Recv: %v", err)
			}
		}
		return stream.Send(&testservice.Item{Name: "late"})
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		swap, err := s.api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		swap.SetRecvTimeout(3 * time.Second)
		if _, err := swap.Recv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("first: %v", err)
		}
		if item, err := swap.Recv(); err != nil || item.Name != "late" {
			t.Errorf("second: %v, %v", item, err)
		}
		if _, err := swap.Recv(); err != io.EOF {
			t.Errorf("end: %v", err)
		}
	})
}

// TestStreams_WrongKind: unary calls of streaming methods and the like are errors of the
// call that say so.
func TestStreams_WrongKind(t *testing.T) {
	eachStreamingWay(t, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for _, method := range testservice.FeedServiceDesc.Methods {
			if err := s.client.Call(t.Context(), method, &testservice.Item{}, &testservice.Item{}); fulmar.CodeOf(err) != fulmar.Unimplemented {
				t.Errorf("a unary call of %s: %v", method.Name, err)
			}
		}
		for _, method := range testservice.CalculatorServiceDesc.Methods {
			if _, err := s.client.OpenStream(t.Context(), method); fulmar.CodeOf(err) != fulmar.Unimplemented {
				t.Errorf("a stream of %s: %v", method.Name, err)
			}
		}
		unknown := &fulmar.MethodDesc{Service: "Feed", Name: "unknown", ClientStreams: true, ServerStreams: true, Codec: thrift.Binary}
		stream, err := fulmar.OpenBidiStream[testservice.Item, testservice.Item](t.Context(), s.client, unknown)
		if err == nil {
			_, err = stream.Recv()
		}
		if failed := new(fulmar.Error); !errors.As(err, &failed) || failed.Code() != fulmar.Unimplemented || failed.Executed() != fulmar.ExecutedNo {
			t.Errorf("an unknown method: %v", err)
		}
	})
}

// TestStreams_CalledWithMessages: protocols that have no streams say so.
func TestStreams_CalledWithMessages(t *testing.T) {
	server := serveAny(t, fulmar.ServerConfig{}, func(registrar fulmar.Registrar) { testservice.RegisterFeedServer(registrar, &feed{}) })
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		raw, err := fulmar.RawMethod("Feed", "swap", false)
		if err != nil {
			t.Fatal(err)
		}
		err = client.Call(t.Context(), raw, &fulmar.Raw{0}, &fulmar.Raw{})
		if fulmar.CodeOf(err) != fulmar.Unimplemented && fulmar.CodeOf(err) != fulmar.Internal || !strings.Contains(err.Error(), "Feed.swap is a streaming method") {
			t.Errorf("a message: %v", err)
		}
	})
}

// TestStreams_SlowReceiver: who sends waits for who receives.
func TestStreams_SlowReceiver(t *testing.T) {
	const most = 16 << 20
	service := &feed{list: func(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
		text := strings.Repeat("x", 64<<10)
		for range item.Count {
			if err := stream.Send(&testservice.Item{Name: text}); err != nil {
				return err
			}
		}
		return nil
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		list, err := s.api.List(t.Context(), &testservice.Item{Count: 2 * most >> 16})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if held := s.server.Stats().BufferedBytes; held > most/4 {
			t.Errorf("the server holds %d bytes for a client that reads none", held)
		}
		count := 0
		for _, err := range list.All() {
			if err != nil {
				t.Fatal(err)
			}
			count++
		}
		if count != 2*most>>16 {
			t.Errorf("%d messages", count)
		}
	})
}

// TestStreams_Stop: a server that stops lets streams end, until its time is over.
func TestStreams_Stop(t *testing.T) {
	began := make(chan struct{}, 1)
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		began <- struct{}{}
		for {
			item, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := stream.Send(item); err != nil {
				return err
			}
		}
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{DrainTimeout: 10 * time.Second}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		swap, err := s.api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-began
		stopped := make(chan error, 1)
		go func() { stopped <- s.stop() }()
		time.Sleep(time.Second)
		if err := swap.Send(&testservice.Item{Name: "still"}); err != nil {
			t.Error(err)
		}
		if item, err := swap.Recv(); err != nil || item.Name != "still" {
			t.Errorf("%v, %v", item, err)
		}
		if late, err := s.api.Swap(t.Context(), fulmar.Timeout(time.Second)); err == nil {
			if _, err = late.Recv(); err == nil || err == io.EOF {
				t.Errorf("a stream has begun at a server that stops: %v", err)
			}
		}
		if err := swap.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := swap.Recv(); err != io.EOF {
			t.Error(err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}
