package fulmar_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// TestStreams_MessageLimit: a server takes no message longer than its limit, whatever the
// client may send.
func TestStreams_MessageLimit(t *testing.T) {
	config := fulmar.ServerConfig{MaxMessageBytes: 1000}
	eachStreamingWay(t, &feed{}, config, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		// Over TTHeader the client knows behind the first call what the server takes.
		for _, length := range []int{900, 1001} {
			want := fulmar.Code(0)
			if length > 1000 {
				want = fulmar.ResourceExhausted
			}
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err = swap.Send(&testservice.Item{Name: strings.Repeat("x", length)}); err == nil {
				_, err = swap.Recv()
			}
			if fulmar.CodeOf(err) != want {
				t.Errorf("a message of %d bytes: %v", length, err)
			}
			swap.Cancel()
		}
	})
}

// TestStreams_HandlerIgnoresTheLimit: a stream lacks a message that was too long for its
// client, and has not succeeded, whatever the handler says.
func TestStreams_HandlerIgnoresTheLimit(t *testing.T) {
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		for _, length := range []int{10, 1001} {
			_ = stream.Send(&testservice.Item{Name: strings.Repeat("x", length)})
		}
		return nil
	}}
	for _, way := range directWays {
		want := fulmar.ResourceExhausted // the client sees itself what is too long
		if way == "ttheader" {
			want = fulmar.Internal
		}
		synctest.Test(t, func(t *testing.T) {
			s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{MaxMessageBytes: 1000})
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := swap.Recv(); err != nil {
				t.Errorf("%s: %v", way, err)
			}
			if item, err := swap.Recv(); fulmar.CodeOf(err) != want {
				t.Errorf("%s: behind a message that could not be sent: %v, %v", way, item, err)
			}
		})
	}
}

// swapOnce opens a stream, and has a message come back. The stream stays open.
func swapOnce(t *testing.T, s *streaming) fulmar.BidiStreamingClient[testservice.Item, testservice.Item] {
	t.Helper()
	swap, err := s.api.Swap(t.Context())
	if err != nil {
		t.Error(err)
		return nil
	}
	if err = swap.Send(&testservice.Item{Name: "x"}); err == nil {
		_, err = swap.Recv()
	}
	if err != nil {
		t.Error(err)
	}
	return swap
}

// TestStreams_FewAllowed: streams beyond what a server takes on a connection go to other
// connections, or wait.
func TestStreams_FewAllowed(t *testing.T) {
	const allowed, count = 4, 11
	for _, way := range []string{"grpc", "ttheader"} {
		for name, open := range map[string]func(func()){
			"one after the other": func(open func()) {
				for range count {
					open()
				}
			},
			"together": func(open func()) {
				var group sync.WaitGroup
				for range count {
					group.Go(open)
				}
				group.Wait()
			},
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{MaxConnectionCalls: allowed}, fulmar.ClientConfig{})
					open(func() { swapOnce(t, s) })
				})
			})
		}
	}
}

// TestStreams_FewAllowedAndWaitedFor: where there is no other connection, a stream waits.
func TestStreams_FewAllowedAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreaming(t, "ttheader", &feed{}, fulmar.ServerConfig{MaxConnectionCalls: 1}, fulmar.ClientConfig{MaxConnections: 1})
		first := swapOnce(t, s)
		const lasts = time.Minute
		time.AfterFunc(lasts, first.Cancel)
		begun := time.Now()
		swapOnce(t, s)
		if took := time.Since(begun); took != lasts {
			t.Errorf("the second stream waited for %v, the first took %v", took, lasts)
		}
	})
}

// TestStreams_HandlersGoOn: who gives streams up and opens others meets handlers over TTHeader
// that have not returned. It gets another connection.
func TestStreams_HandlersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			item, err := stream.Recv()
			if err == nil {
				err = stream.Send(item)
			}
			<-stream.Context().Done()
			time.Sleep(time.Second)
			return err
		}}
		s := newStreaming(t, "ttheader", service, fulmar.ServerConfig{MaxConnectionCalls: 2}, fulmar.ClientConfig{})
		kept := swapOnce(t, s)
		for range 10 {
			swapOnce(t, s).Cancel()
			synctest.Wait()
		}
		if err := kept.Send(&testservice.Item{}); err != nil {
			t.Error(err)
		}
		kept.Cancel()
	})
}

// TestStreams_OverBudget: a message for which there is no room ends its stream. Others of the
// connection go on.
func TestStreams_OverBudget(t *testing.T) {
	for _, way := range directWays {
		if way == "local" {
			continue // Nothing arrives in parts.
		}
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{MaxBufferedBytes: 1 << 20}, fulmar.ClientConfig{})
				open := func() fulmar.BidiStreamingClient[testservice.Item, testservice.Item] {
					swap, err := s.api.Swap(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return swap
				}
				exchange := func(swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item], length int) error {
					sent := swap.Send(&testservice.Item{Name: strings.Repeat("x", length)})
					_, err := swap.Recv()
					return errors.Join(err, sent)
				}
				good := open()
				if err := exchange(good, 1); err != nil {
					t.Fatal(err)
				}
				before := s.server.Stats().BufferedBytes
				for range 3 {
					long := open()
					if err := exchange(long, 4<<20); fulmar.CodeOf(err) != fulmar.ResourceExhausted {
						t.Errorf("a message of 4 MiB: %v", err)
					}
					long.Cancel()
					synctest.Wait() // for its handler, whose headers count
					if held := s.server.Stats().BufferedBytes; held != before {
						t.Errorf("behind its end, the budget counts %d bytes more", held-before)
					}
					if err := exchange(good, 1000); err != nil {
						t.Errorf("another stream of the connection: %v", err)
					}
				}
				good.Cancel()
			})
		})
	}
}

// TestStreams_FailedAfterAll: where the caller is told that a call has failed which succeeded in the
// handler, interceptors and observers of the server are told the same.
func TestStreams_FailedAfterAll(t *testing.T) {
	long := strings.Repeat("v", limits.HTTP2HeaderListBytes+1<<16) // which has two bytes in TTHeader
	for name, test := range map[string]struct {
		way    string
		handle func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error
		code   fulmar.Code
		text   string
	}{
		"a message too long": {"ttheader", func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			_ = stream.Send(&testservice.Item{Name: strings.Repeat("x", 1001)})
			return nil
		}, fulmar.Internal, "a message could not be sent"},
		"trailers too long, ttheader": {"ttheader", func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			return fulmar.SetReplyTrailer(stream.Context(), "k", long)
		}, fulmar.Internal, "limit 65535"},
		"a business error with trailers too long": {"ttheader", func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			return errors.Join(fulmar.NewBusinessError(7, "not today", nil), fulmar.SetReplyTrailer(stream.Context(), "k", long))
		}, fulmar.Internal, "limit 65535"},
		"trailers too long, grpc": {"grpc", func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			return fulmar.SetReplyTrailer(stream.Context(), "k", long)
		}, fulmar.ResourceExhausted, "headers are too large"},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := map[string]error{}
			s := newStreaming(t, test.way, &feed{swap: test.handle}, fulmar.ServerConfig{
				StreamInterceptors: []fulmar.StreamInterceptor{func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
					call.OnEnd(func(err error) { told["OnEnd"] = err })
					return next(ctx, call)
				}},
				Observers: []observe.Observer{{Event: func(_ *observe.Call, _ any, event observe.Event) {
					if event.Phase == observe.PhaseDone {
						told["the observer"] = event.Err
					}
				}}},
			}, fulmar.ClientConfig{MaxMessageBytes: 1000})
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = swap.Recv()
			synctest.Wait()
			told["the caller"] = err
			if len(told) != 3 {
				t.Errorf("%s: %d were told", name, len(told))
			}
			for who, err := range told {
				if fulmar.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
					t.Errorf("%s: %s was told %v", name, who, err)
				}
			}
		})
	}
}
