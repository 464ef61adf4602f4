package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
	"github.com/fulmar-rpc/fulmar/observe"
)

// busyAdder takes until the test is over.
type busyAdder struct{ until chan struct{} }

func (b busyAdder) Add(context.Context, int32, int32) (int32, error) {
	<-b.until
	return 0, nil
}

// serveFeed serves at an address of a network until the test ends.
func serveFeed(t *testing.T, network *simnet.Network, address string, config fulmar.ServerConfig, service *feed, adder testservice.CalculatorServer) {
	t.Helper()
	listener, err := network.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	config.Listener, config.Logger = listener, slog.New(slog.DiscardHandler)
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterFeedServer(server, service)
	testservice.RegisterCalculatorServer(server, adder)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func feedClient(t *testing.T, config fulmar.ClientConfig) *fulmar.Client {
	t.Helper()
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// phasesOf are the phases of streams, and where each was at the end.
type phasesOf struct {
	mu      sync.Mutex
	retried int
	at      map[string]int
}

func (p *phasesOf) observer() observe.Observer {
	return observe.Observer{Event: func(_ *observe.Call, _ any, event observe.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch event.Phase {
		case observe.PhaseRetried:
			p.retried++
		case observe.PhaseDone:
			p.at[fmt.Sprintf("%s, attempt %d", event.Address, event.Attempt)]++
		}
	}}
}

// oneIsFull returns a client of two servers, one of which is full until the test ends, and what it
// does.
func oneIsFull(t *testing.T, config fulmar.ClientConfig) (testservice.FeedClient, *phasesOf) {
	t.Helper()
	network, over := simnet.New(simnet.Config{}), make(chan struct{})
	serveFeed(t, network, "full:1", fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueuedCalls: -1}, &feed{}, busyAdder{over})
	serveFeed(t, network, "free:1", fulmar.ServerConfig{}, &feed{}, streamAdder{})
	t.Cleanup(func() { close(over) })
	busy := feedClient(t, fulmar.ClientConfig{Target: "full:1", Dial: network.Dial, Protocol: config.Protocol})
	go func() {
		_, _ = testservice.NewCalculatorClient(busy).Add(context.Background(), 1, 2)
	}()
	synctest.Wait()
	seen := &phasesOf{at: map[string]int{}}
	config.Target, config.Dial, config.Observers = "static:///full:1,free:1", network.Dial, []observe.Observer{seen.observer()}
	return testservice.NewFeedClient(feedClient(t, config)), seen
}

// TestStreams_OpenAgainElsewhere: a server that is full refuses streams that are open already,
// for whoever opens them, and another one takes them, with what was sent.
func TestStreams_OpenAgainElsewhere(t *testing.T) {
	for name, protocol := range map[string]fulmar.Protocol{"grpc": fulmar.GRPC, "ttheader": fulmar.TTHeader} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, seen := oneIsFull(t, fulmar.ClientConfig{Protocol: protocol})
				const rounds = 20
				for range rounds {
					everyKind(t, api)
					time.Sleep(time.Second) // what is tried again has a budget
				}
				synctest.Wait()
				seen.mu.Lock()
				defer seen.mu.Unlock()
				if first, second := seen.at["free:1, attempt 1"], seen.at["free:1, attempt 2"]; first+second != 3*rounds || second == 0 || second != seen.retried {
					t.Errorf("streams ended at %v, %d were tried again", seen.at, seen.retried)
				}
			})
		})
	}
}

// everyKind makes a stream of each kind.
func everyKind(t *testing.T, api testservice.FeedClient) {
	t.Helper()
	list, err := api.List(t.Context(), &testservice.Item{Name: "a", Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for item, err := range list.All() {
		if err != nil || item.Count != int32(n) {
			t.Fatalf("item %d: %v, %v", n, item, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d items, want 3", n)
	}
	fill, err := api.Fill(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := fill.Send(&testservice.Item{Count: int32(i)}); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			synctest.Wait() // the refusal comes between messages
		}
	}
	if sum, err := fill.CloseAndRecv(); err != nil || sum.Count != 6 {
		t.Errorf("the sum is %v, %v", sum, err)
	}
	swap, err := api.Swap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := swap.Send(&testservice.Item{Count: int32(i)}); err != nil {
			t.Fatal(err)
		}
		if item, err := swap.Recv(); err != nil || item.Count != int32(i) {
			t.Fatalf("%v, %v", item, err)
		}
	}
	if err := swap.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := swap.Recv(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// refusal says how the first connections of a client are served.
type refusal struct {
	// connections do so; after is how many bytes of data of a stream come before. The connection
	// takes no others either. reset: the stream is told by itself.
	connections, after int
	reset              bool
	headers            int
}

// serve serves a connection.
func (r *refusal) serve(conn net.Conn) {
	pool, data := linkbuf.NewPool(), map[uint32]int{}
	h := http2.NewConn(http2.Config{Streams: 100}, pool, 0)
	defer h.Close()
	defer conn.Close()
	send := func(behind ...byte) {
		out := h.Swap(linkbuf.New(pool))
		defer out.Release()
		// In one piece: a client that learns of the reset before it learns that the connection
		// takes no more streams may open the stream there again, and once is all that it tries.
		_, _ = conn.Write(append(bytes.Join(out.Slices(nil), nil), behind...))
	}
	refuse := func(id uint32) {
		if data[id] >= r.after {
			data[id] = -1 << 30
			last := byte(0)
			if r.reset {
				h.Reset(id, http2.RefusedStream)
				h.Release(id)
				last = byte(id)
			}
			goAway := make([]byte, http2.FrameHeaderSize+8)
			http2.PutFrameHeader(goAway, 8, http2.FrameGoAway, 0, 0)
			goAway[http2.FrameHeaderSize+3] = last
			send(goAway...)
		}
	}
	send()
	unread, buffer, began := []byte{}, make([]byte, 64<<10), time.Now()
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		for unread = append(unread, buffer[:n]...); ; {
			event, used, _, err := h.Next(unread, http2.Nanoseconds(time.Since(began)))
			if err != nil {
				return
			}
			if event.Kind == http2.EventNone && used == 0 {
				break
			}
			switch event.Kind {
			case http2.EventHeaders:
				r.headers++
				refuse(event.Stream)
			case http2.EventData:
				data[event.Stream] += len(event.Data)
				h.Consume(event.Stream, len(event.Data), http2.Nanoseconds(time.Since(began)))
				refuse(event.Stream)
			}
			unread = unread[used:]
		}
		send()
	}
}

// refusedAtFirst runs test with a client whose first connections are served by r, and others by
// a server of its own.
func refusedAtFirst(t *testing.T, r *refusal, service *feed, test func(t *testing.T, api testservice.FeedClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		serveFeed(t, network, "good:1", fulmar.ServerConfig{}, service, streamAdder{})
		bad, err := network.Listen("bad:1")
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for {
				conn, err := bad.Accept()
				if err != nil {
					return
				}
				group.Go(func() { r.serve(conn) })
			}
		})
		t.Cleanup(func() {
			_ = bad.Close()
			group.Wait()
		})
		dialled := 0
		config := fulmar.ClientConfig{Target: "any:1", Protocol: fulmar.GRPC}
		config.Dial = func(ctx context.Context, kind, _ string) (net.Conn, error) {
			if dialled++; dialled <= r.connections {
				return network.Dial(ctx, kind, "bad:1")
			}
			return network.Dial(ctx, kind, "good:1")
		}
		test(t, testservice.NewFeedClient(feedClient(t, config)))
	})
}

// TestStreams_RefusedUnseen: what a server says that it has not looked at is sent again.
func TestStreams_RefusedUnseen(t *testing.T) {
	for _, after := range []int{0, 1, 20} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %d bytes, reset %v", after, reset), func(t *testing.T) {
				r := &refusal{connections: 1, after: after, reset: reset}
				refusedAtFirst(t, r, &feed{}, func(t *testing.T, api testservice.FeedClient) {
					everyKind(t, api)
					if r.headers == 0 {
						t.Error("no stream was refused")
					}
				})
			})
		}
	}
}

// TestStreams_RefusedWhileOthersWait: who waits for the header waits for that of the server
// that takes the stream, and who receives as well.
func TestStreams_RefusedWhileOthersWait(t *testing.T) {
	r := &refusal{connections: 1, after: 30}
	refusedAtFirst(t, r, &feed{}, func(t *testing.T, api testservice.FeedClient) {
		swap, err := api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := swap.Header(); err != nil {
				t.Errorf("Header: %v", err)
			}
		})
		group.Go(func() {
			for i := range 100 {
				if item, err := swap.Recv(); err != nil || item.Count != int32(i) {
					t.Errorf("%v, %v", item, err)
				}
			}
			if _, err := swap.Recv(); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		})
		synctest.Wait()
		for i := range 100 {
			if err := swap.Send(&testservice.Item{Name: "n", Count: int32(i)}); err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		if err := swap.CloseSend(); err != nil {
			t.Error(err)
		}
		group.Wait()
	})
}

// TestStreams_OpenAgainInTheirTime: the server that takes a stream knows how long it may take.
func TestStreams_OpenAgainInTheirTime(t *testing.T) {
	left := make(chan time.Duration, 1)
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		call, _ := fulmar.CallFrom(stream.Context())
		deadline, _ := call.Deadline()
		left <- time.Until(deadline)
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	refusedAtFirst(t, &refusal{connections: 1}, service, func(t *testing.T, api testservice.FeedClient) {
		begun := time.Now()
		swap, err := api.Swap(t.Context(), fulmar.Timeout(3*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the server's refusal waits
		if _, err := swap.Recv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("Recv: %v", err)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("it took %v, want 3 s", took)
		}
		if told := <-left; told < 1900*time.Millisecond || told > 2*time.Second {
			t.Errorf("the second server was told of %v, want 2 s", told)
		}
	})
}

// TestStreams_NotOpenedAgain: a stream ends with the refusal if too much was sent, if policies
// say so, or if others refuse it as well.
func TestStreams_NotOpenedAgain(t *testing.T) {
	cases := map[string]struct {
		refusal  refusal
		messages int
		headers  int
	}{
		"too much was sent": {refusal: refusal{connections: 1, after: limits.StreamReplayBytes + 8<<10}, messages: 80, headers: 1},
		"refused again":     {refusal: refusal{connections: 2}, messages: 1, headers: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := c.refusal
			refusedAtFirst(t, &r, &feed{}, func(t *testing.T, api testservice.FeedClient) {
				fill, err := api.Fill(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range c.messages {
					if err = fill.Send(&testservice.Item{Name: strings.Repeat("n", 1<<10)}); err != nil {
						break
					}
				}
				if err != nil && err != io.EOF {
					t.Errorf("Send: %v", err)
				}
				_, err = fill.CloseAndRecv()
				var failed *fulmar.Error
				if !errors.As(err, &failed) || failed.Code() != fulmar.Unavailable || failed.Executed() != fulmar.ExecutedNo {
					t.Errorf("got %v", err)
				}
				if r.headers != c.headers {
					t.Errorf("%d streams were refused, want %d", r.headers, c.headers)
				}
			})
		})
	}
}

// TestStreams_EndWhileOpenedAgain: a stream that is being opened again ends at once with its
// caller, whatever it waits for.
func TestStreams_EndWhileOpenedAgain(t *testing.T) {
	for _, way := range []string{"Cancel", "context", "deadline"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, r := simnet.New(simnet.Config{}), &refusal{}
				bad, err := network.Listen("bad:1")
				if err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				group.Go(func() {
					if conn, err := bad.Accept(); err == nil {
						r.serve(conn)
					}
				})
				dialled := 0
				client := feedClient(t, fulmar.ClientConfig{
					Target: "any:1", Protocol: fulmar.GRPC, ConnectTimeout: time.Minute,
					Dial: func(ctx context.Context, kind, _ string) (net.Conn, error) {
						if dialled++; dialled == 1 {
							return network.Dial(ctx, kind, "bad:1")
						}
						<-ctx.Done()
						return nil, ctx.Err()
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun := time.Now()
				swap, err := testservice.NewFeedClient(client).Swap(ctx, fulmar.Timeout(5*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				group.Go(func() {
					_, err := swap.Recv()
					if code := fulmar.CodeOf(err); code != fulmar.Canceled && code != fulmar.DeadlineExceeded {
						t.Errorf("Recv: %v", err)
					}
				})
				synctest.Wait()
				if dialled != 2 {
					t.Errorf("%d connections were asked for, want 2", dialled)
				}
				want := time.Duration(0)
				switch way {
				case "Cancel":
					swap.Cancel()
				case "context":
					cancel()
				default:
					want = 5 * time.Second
					<-swap.Context().Done()
				}
				_ = bad.Close()
				synctest.Wait()
				if took := time.Since(begun); took != want {
					t.Errorf("it took %v, want %v", took, want)
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
				group.Wait()
			})
		})
	}
}

// TestStreams_ReplayIsBounded: streams of which nothing has come keep what was sent up to the
// limit.
func TestStreams_ReplayIsBounded(t *testing.T) {
	pieces := [][]byte{bytes.Repeat([]byte("p"), 5), bytes.Repeat([]byte("m"), 10), bytes.Repeat([]byte("n"), 20)}
	if kept := fulmar.Kept(pieces, 5, 30); len(kept) != 1 || !slices.Equal(kept[0], bytes.Join(pieces[1:], nil)) {
		t.Errorf("kept %q", kept)
	}
	if kept := fulmar.Kept([][]byte{make([]byte, limits.StreamReplayBytes)}, 0, limits.StreamReplayBytes); kept != nil {
		t.Errorf("kept %d messages that are too long", len(kept))
	}
}
