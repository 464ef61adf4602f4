package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// badEnds are what a function of OnEnd may do that it should not.
func badEnds() map[string]func() {
	return map[string]func(){
		"panics":             func() { panic("end") },
		"ends its goroutine": runtime.Goexit,
	}
}

// spoiledEnds is an interceptor with a bad function between two good ones. told is how often
// these were called.
func spoiledEnds(bad func(), told *atomic.Int32) fulmar.StreamInterceptor {
	good := func(error) { told.Add(1) }
	return func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
		call.OnEnd(good)
		call.OnEnd(func(error) { bad() })
		call.OnEnd(good)
		return next(ctx, call)
	}
}

// doneCounter counts the streams of whose end an observer is told.
func doneCounter(done *atomic.Int32) []observe.Observer {
	return []observe.Observer{{Phases: observe.SetOf(observe.PhaseDone), Event: func(*observe.Call, any, observe.Event) { done.Add(1) }}}
}

// TestStreams_OnEndFailsAtTheServer: the caller learns how the call ended, others are told
// once, and other calls of the connection go on.
func TestStreams_OnEndFailsAtTheServer(t *testing.T) {
	for what, bad := range badEnds() {
		for _, way := range directWays {
			t.Run(what+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var told, done atomic.Int32
					config := fulmar.ServerConfig{
						StreamInterceptors: []fulmar.StreamInterceptor{fulmar.StreamsOnlyFor(spoiledEnds(bad, &told), "Feed.list")}, Observers: doneCounter(&done),
					}
					s := newStreaming(t, way, &feed{}, config, fulmar.ClientConfig{})
					good := swapOnce(t, s)
					for range 3 {
						list, err := s.api.List(t.Context(), &testservice.Item{Count: 2})
						if err != nil {
							t.Fatal(err)
						}
						for _, err := range list.All() {
							if err != nil {
								t.Error(err)
							}
						}
					}
					synctest.Wait()
					if told.Load() != 6 || done.Load() != 3 {
						t.Errorf("3 ends were told of %d times in 6, observers of %d", told.Load(), done.Load())
					}
					if stats := s.server.Stats(); stats.Calls != 1 || what == "panics" && stats.Network.Panics != 0 {
						t.Errorf("%d calls run, %d panics in the network", stats.Calls, stats.Network.Panics)
					}
					if err := good.Send(&testservice.Item{Name: "x"}); err != nil {
						t.Error(err)
					}
					if _, err := good.Recv(); err != nil {
						t.Errorf("another stream: %v", err)
					}
					good.Cancel()
				})
			})
		}
	}
}

// TestStreams_OnEndFailsAtTheClient: whoever ends the stream, the process and the caller go
// on, the places of the stream are free, and others are told.
func TestStreams_OnEndFailsAtTheClient(t *testing.T) {
	ends := map[string]func(cancel context.CancelFunc, swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item]){
		"context": func(cancel context.CancelFunc, _ fulmar.BidiStreamingClient[testservice.Item, testservice.Item]) {
			cancel()
		},
		"caller": func(_ context.CancelFunc, swap fulmar.BidiStreamingClient[testservice.Item, testservice.Item]) {
			swap.Cancel()
		},
		"deadline": func(context.CancelFunc, fulmar.BidiStreamingClient[testservice.Item, testservice.Item]) {
			time.Sleep(time.Minute)
		},
	}
	for what, bad := range badEnds() {
		for who, end := range ends {
			for _, way := range directWays {
				t.Run(what+"/"+who+"/"+way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { endBadly(t, way, bad, end) })
				})
			}
		}
	}
}

// endBadly ends streams whose users fail when they are told of that.
func endBadly(t *testing.T, way string, bad func(), end func(context.CancelFunc, fulmar.BidiStreamingClient[testservice.Item, testservice.Item])) {
	var told, done, explained atomic.Int32
	var lines strings.Builder
	s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{
		StreamInterceptors: []fulmar.StreamInterceptor{spoiledEnds(bad, &told)}, Observers: doneCounter(&done), Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		ExplainEvery: 1, OnExplanation: func(*policy.Explanation) { explained.Add(1); bad() },
	})
	const streams = 3
	for range streams {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		ended := make(chan error, 1)
		go func() {
			err := io.ErrUnexpectedEOF
			defer func() { ended <- err }()
			swap, failed := s.api.Swap(ctx)
			if failed != nil {
				err = failed
				return
			}
			defer func() { // also where the goroutine ends
				if _, failed := swap.Recv(); failed != nil {
					err = nil
				}
			}()
			end(cancel, swap)
			synctest.Wait()
		}()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		cancel()
	}
	synctest.Wait()
	got := fmt.Sprintf("told %d, done %d, explained %d", told.Load(), done.Load(), explained.Load())
	if want := fmt.Sprintf("told %d, done %d, explained %d", 2*streams, streams, streams); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if n := s.server.Stats().Calls; n != 0 {
		t.Errorf("%d calls run", n)
	}
	if !strings.Contains(lines.String(), "panic at the end of a stream") {
		t.Errorf("logged: %q", lines.String())
	}
}
