package fulmar_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// serveNarrow is a server that gives each stream a window of so many bytes, and answers nothing.
func serveNarrow(conn net.Conn, window uint32) {
	set := []byte{0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(set[11:], window)
	_, _ = conn.Write(set)
	_, _ = conn.Write([]byte{0, 0, 0, 4, 1, 0, 0, 0, 0})
	_, _ = io.Copy(io.Discard, conn)
}

// serveEach has each connection to an address served as that says, until the test ends.
func serveEach(t *testing.T, network *simnet.Network, serves map[string]func(net.Conn)) {
	t.Helper()
	var group sync.WaitGroup
	t.Cleanup(group.Wait)
	for address, serve := range serves {
		listener, err := network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				group.Go(func() { serve(conn) })
			}
		})
		t.Cleanup(func() { _ = listener.Close() })
	}
}

// refusedByTheFirst is a client whose first connection r serves, and others second.
func refusedByTheFirst(t *testing.T, r *refusal, second func(net.Conn), config fulmar.ClientConfig) testservice.FeedClient {
	t.Helper()
	network := simnet.New(simnet.Config{})
	serveEach(t, network, map[string]func(net.Conn){"bad:1": r.serve, "second:1": second})
	dialled := 0
	config.Target, config.Protocol = "any:1", fulmar.GRPC
	config.Dial = func(ctx context.Context, kind, _ string) (net.Conn, error) {
		if dialled++; dialled <= 1 {
			return network.Dial(ctx, kind, "bad:1")
		}
		return network.Dial(ctx, kind, "second:1")
	}
	return testservice.NewFeedClient(feedClient(t, config))
}

// TestStreams_ReplayThatStalls: who receives learns that what was sent before could not be sent
// again.
func TestStreams_ReplayThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusal{connections: 1, after: 30 << 10}
		api := refusedByTheFirst(t, r, func(c net.Conn) { serveNarrow(c, 1<<10) }, fulmar.ClientConfig{StreamSendTimeout: 5 * time.Second})
		swap, err := api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err = swap.Send(&testservice.Item{Name: strings.Repeat("n", 4<<10)}); err != nil {
				break
			}
			synctest.Wait()
		}
		begun := time.Now()
		if _, err := swap.Recv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded || time.Since(begun) > 5*time.Second {
			t.Errorf("Recv: %v after %v", err, time.Since(begun))
		}
	})
}

// TestStreams_OpenAgainWithTheirDeadline: the server that takes a stream knows its deadline.
func TestStreams_OpenAgainWithTheirDeadline(t *testing.T) {
	for name, protocol := range map[string]fulmar.Protocol{"grpc": fulmar.GRPC, "ttheader": fulmar.TTHeader} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, over := simnet.New(simnet.Config{}), make(chan struct{})
				serveFeed(t, network, "full:1", fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueuedCalls: -1}, &feed{}, busyAdder{over})
				got := map[string]int{}
				service := &feed{swap: func(s fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
					if d, ok := s.Context().Deadline(); ok {
						got[time.Until(d).String()]++
					} else {
						got["none"]++
					}
					return nil
				}}
				serveFeed(t, network, "free:1", fulmar.ServerConfig{}, service, streamAdder{})
				t.Cleanup(func() { close(over) })
				busy := feedClient(t, fulmar.ClientConfig{Target: "full:1", Dial: network.Dial, Protocol: protocol})
				go func() { _, _ = testservice.NewCalculatorClient(busy).Add(context.Background(), 1, 2) }()
				synctest.Wait()
				client := feedClient(t, fulmar.ClientConfig{Target: "static:///full:1,free:1", Dial: network.Dial, Protocol: protocol})
				for range 20 {
					swap, err := testservice.NewFeedClient(client).Swap(t.Context(), fulmar.Timeout(5*time.Second))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := swap.Recv(); err != io.EOF {
						t.Error(err)
					}
					time.Sleep(time.Second)
				}
				if got["none"] > 0 || len(got) == 0 {
					t.Errorf("streams came with %v, want up to 5 s for each", got)
				}
			})
		})
	}
}

// TestStreams_ReceiveTimeoutWhileOpenedAgain: who waits for no longer than a timeout does not
// wait for a connection either.
func TestStreams_ReceiveTimeoutWhileOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, r := simnet.New(simnet.Config{}), &refusal{}
		bad, err := network.Listen("bad:1")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := bad.Accept(); err == nil {
				r.serve(conn)
			}
		}()
		dialled := 0
		client := feedClient(t, fulmar.ClientConfig{Target: "any:1", Protocol: fulmar.GRPC, ConnectTimeout: time.Minute,
			Dial: func(ctx context.Context, kind, _ string) (net.Conn, error) {
				if dialled++; dialled == 1 {
					return network.Dial(ctx, kind, "bad:1")
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		swap, err := testservice.NewFeedClient(client).Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		swap.SetRecvTimeout(100 * time.Millisecond)
		begun := time.Now()
		_, err = swap.Recv()
		if took := time.Since(begun); took != 100*time.Millisecond || fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("Recv with a timeout of 100ms took %v: %v", took, err)
		}
		_ = bad.Close()
		swap.Cancel()
	})
}

// TestStreams_SendBehindCloseSend fails, whatever has come of the stream, and the server gets
// what was sent before.
func TestStreams_SendBehindCloseSend(t *testing.T) {
	eachStreamingWay(t, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for _, messages := range []int{0, 1} {
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range messages {
				if err := swap.Send(&testservice.Item{Name: "before"}); err != nil {
					t.Fatal(err)
				}
				if _, err := swap.Recv(); err != nil {
					t.Fatal(err)
				}
			}
			if err := swap.CloseSend(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				begun := time.Now()
				err := swap.Send(&testservice.Item{Name: "behind"})
				if e := asError(t, err); e.Code() != fulmar.Internal || !strings.Contains(e.Message(), "behind CloseSend") || time.Since(begun) > 0 {
					t.Errorf("Send behind CloseSend and %d messages: %v after %v", messages, err, time.Since(begun))
				}
			}
			if item, err := swap.Recv(); err != io.EOF {
				t.Errorf("Recv behind %d messages: %v, %v", messages, item, err)
			}
			err = swap.Send(&testservice.Item{Name: "behind"})
			if e := asError(t, err); !strings.Contains(e.Message(), "behind CloseSend") {
				t.Errorf("Send behind the end: %v", err)
			}
		}
	})
}

// TestStreams_NotOpenedAgainByPolicy: of two servers one is full, and what it refuses fails if
// policies say that nothing is tried again.
func TestStreams_NotOpenedAgainByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, seen := oneIsFull(t, fulmar.ClientConfig{
			Protocol: fulmar.GRPC, Policy: policy.Client{Methods: map[string]policy.Method{"Feed": {Retry: policy.Retry{Attempts: -1}}}},
		})
		refused := 0
		for range 20 {
			list, err := api.List(t.Context(), &testservice.Item{Name: "a", Count: 3})
			if err == nil {
				for _, err = range list.All() {
					if err != nil {
						break
					}
				}
			}
			var failed *fulmar.Error
			if errors.As(err, &failed) && failed.Executed() == fulmar.ExecutedNo {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if refused == 0 || seen.retried != 0 || seen.at["full:1, attempt 1"] != refused || seen.at["free:1, attempt 1"] != 20-refused {
			t.Errorf("%d of 20 were refused, %d tried again: %v", refused, seen.retried, seen.at)
		}
	})
}
