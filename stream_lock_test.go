package fulmar_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestStreamLock_KeepsOthersOut is a stress test: nobody is inside beside another one, and nobody
// is forgotten.
func TestStreamLock_KeepsOthersOut(t *testing.T) {
	var lock fulmar.StreamLock
	var group sync.WaitGroup
	const goroutines, rounds = 8, 20_000
	inside := 0
	for range goroutines {
		group.Go(func() {
			for range rounds {
				lock.Lock()
				inside++
				lock.Unlock()
			}
		})
	}
	group.Wait()
	if inside != goroutines*rounds {
		t.Errorf("%d times inside, want %d", inside, goroutines*rounds)
	}
}

// TestStreamLock_IsHandedOver: who takes it again and again keeps nobody out.
func TestStreamLock_IsHandedOver(t *testing.T) {
	var lock fulmar.StreamLock
	var group sync.WaitGroup
	for range 100 {
		var taken atomic.Bool
		lock.Lock()
		group.Go(func() {
			lock.Lock()
			taken.Store(true)
			lock.Unlock()
		})
		for !taken.Load() {
			lock.Unlock()
			lock.Lock()
		}
		lock.Unlock()
		group.Wait()
	}
}

// refusedFarAway is a client whose first stream r refuses, over a network that takes its time.
func refusedFarAway(t *testing.T, r *refusal, service *feed) testservice.FeedClient {
	t.Helper()
	network := simnet.New(simnet.Config{Delay: 5 * time.Millisecond})
	serveFeed(t, network, "good:1", fulmar.ServerConfig{}, service, streamAdder{})
	serveEach(t, network, map[string]func(net.Conn){"bad:1": r.serve})
	dialled := 0
	return testservice.NewFeedClient(feedClient(t, fulmar.ClientConfig{
		Target: "any:1", Protocol: fulmar.GRPC,
		Dial: func(ctx context.Context, kind, _ string) (net.Conn, error) {
			if dialled++; dialled == 1 {
				return network.Dial(ctx, kind, "bad:1")
			}
			return network.Dial(ctx, kind, "good:1")
		},
	}))
}

// TestStreams_OpenAgainFarAway: time passes in a bubble while a stream is opened again, whatever
// others do with it meanwhile.
func TestStreams_OpenAgainFarAway(t *testing.T) {
	for _, way := range []string{"send", "close", "header", "cancel"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				swap, err := refusedFarAway(t, &refusal{connections: 1}, &feed{}).Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				received, got := 0, error(nil)
				group.Go(func() {
					for ; ; received++ {
						if _, got = swap.Recv(); got != nil {
							return
						}
					}
				})
				time.Sleep(11 * time.Millisecond) // the refusal has come, and nothing more
				want, end := 0, io.EOF
				switch way {
				case "send":
					for ; want < 50; want++ {
						if err := swap.Send(&testservice.Item{Count: int32(want)}); err != nil {
							t.Errorf("message %d: %v", want, err)
						}
						time.Sleep(time.Millisecond)
					}
				case "header":
					group.Go(func() {
						if _, err := swap.Header(); err != nil {
							t.Errorf("Header: %v", err)
						}
					})
					time.Sleep(time.Millisecond)
				case "cancel":
					swap.Cancel()
					end = context.Canceled
				}
				if err := swap.CloseSend(); err != nil {
					t.Errorf("CloseSend: %v", err)
				}
				group.Wait()
				if end == io.EOF && got != io.EOF || end != io.EOF && fulmar.CodeOf(got) != fulmar.Canceled || received != want {
					t.Errorf("received %d messages, want %d, and then %v, want %v", received, want, got, end)
				}
			})
		})
	}
}

// TestStreams_CloseSendBesideSend: CloseSend may be called at any time. Behind a message that
// waits for the server it waits as well, and time passes in a bubble.
func TestStreams_CloseSendBesideSend(t *testing.T) {
	for name, protocol := range map[string]fulmar.Protocol{"grpc": fulmar.GRPC, "ttheader": fulmar.TTHeader} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := simnet.New(simnet.Config{})
				got := 0
				serveFeed(t, network, "server:1", fulmar.ServerConfig{}, &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
					time.Sleep(time.Second)
					for ; ; got++ {
						if _, err := stream.Recv(); err != nil {
							return nil
						}
					}
				}}, streamAdder{})
				client := feedClient(t, fulmar.ClientConfig{Target: "server:1", Dial: network.Dial, Protocol: protocol})
				swap, err := testservice.NewFeedClient(client).Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				sent := 0
				group.Go(func() {
					for ; ; sent++ {
						if err := swap.Send(&testservice.Item{Name: strings.Repeat("n", 64<<10)}); err != nil {
							return // it comes behind CloseSend
						}
					}
				})
				time.Sleep(time.Millisecond)
				if err := swap.CloseSend(); err != nil {
					t.Error(err)
				}
				if _, err := swap.Recv(); err != io.EOF {
					t.Errorf("Recv: %v", err)
				}
				group.Wait()
				if sent == 0 || sent != got {
					t.Errorf("%d messages were sent, %d received", sent, got)
				}
			})
		})
	}
}
