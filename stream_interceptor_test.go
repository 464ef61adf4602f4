package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// streamNotes are what interceptors of streams have seen.
type streamNotes struct {
	mu   sync.Mutex
	list []string
}

func (n *streamNotes) add(format string, arguments ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf(format, arguments...))
}

// interceptor returns one that notes everything, and refuses messages of a name.
func (n *streamNotes) interceptor(name string) fulmar.StreamInterceptor {
	return func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
		n.add("%s begins %s.%s", name, call.Service(), call.Method())
		call.OnSend(func(message any) error {
			n.add("%s sends %s", name, message.(*testservice.Item).Name)
			if message.(*testservice.Item).Name == "forbidden "+name {
				return fulmar.NewError(fulmar.PermissionDenied, name)
			}
			return nil
		})
		call.OnRecv(func(message any) error {
			n.add("%s receives %s", name, message.(*testservice.Item).Name)
			return nil
		})
		call.OnEnd(func(err error) { n.add("%s ended %v", name, err) })
		return next(ctx, call)
	}
}

// TestStreams_Interceptors: the same shape on both sides, in the order of the
// configuration, and what they refuse does not happen.
func TestStreams_Interceptors(t *testing.T) {
	notes := new(streamNotes)
	refuse := func(_ context.Context, call fulmar.Stream, _ fulmar.StreamNext) error {
		return fulmar.NewError(fulmar.PermissionDenied, call.Side().String())
	}
	server := fulmar.ServerConfig{StreamInterceptors: []fulmar.StreamInterceptor{notes.interceptor("s1"), notes.interceptor("s2"), fulmar.StreamsOnlyFor(refuse, "Feed.fill")}}
	client := fulmar.ClientConfig{StreamInterceptors: []fulmar.StreamInterceptor{notes.interceptor("c1"), fulmar.StreamsOnlyFor(refuse, "Feed.list")}}
	eachStreamingWay(t, &feed{}, server, client, func(t *testing.T, s *streaming) {
		notes.list = nil
		swap, err := s.api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := swap.Send(&testservice.Item{Name: "forbidden c1"}); fulmar.CodeOf(err) != fulmar.PermissionDenied {
			t.Errorf("a message that was refused: %v", err)
		}
		if err := swap.Send(&testservice.Item{Name: "x"}); err != nil {
			t.Error(err)
		}
		if _, err := swap.Recv(); err != nil {
			t.Error(err)
		}
		_ = swap.CloseSend()
		if _, err := swap.Recv(); err != io.EOF {
			t.Error(err)
		}
		synctest.Wait()
		want := []string{
			"c1 begins Feed.swap", "c1 sends forbidden c1", "c1 sends x", "s1 begins Feed.swap", "s2 begins Feed.swap",
			"s1 receives x", "s2 receives x", "s1 sends x", "s2 sends x", "c1 receives x", "s1 ended <nil>", "s2 ended <nil>", "c1 ended <nil>",
		}
		sorted := slices.Clone(notes.list)
		slices.Sort(sorted)
		slices.Sort(want)
		if !slices.Equal(sorted, want) {
			t.Errorf("got %q", notes.list)
		}
		if _, err := s.api.List(t.Context(), &testservice.Item{}); fulmar.CodeOf(err) != fulmar.PermissionDenied || !strings.Contains(err.Error(), "client") {
			t.Errorf("refused by the client: %v", err)
		}
		fill, err := s.api.Fill(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fill.CloseAndRecv(); fulmar.CodeOf(err) != fulmar.PermissionDenied || !strings.Contains(err.Error(), "server") {
			t.Errorf("refused by the server: %v", err)
		}
	})
}

// TestStreams_InterceptorFailsBehindNext: nobody gets the stream that was opened, so it ends,
// and its places with it.
func TestStreams_InterceptorFailsBehindNext(t *testing.T) {
	refused := fulmar.NewError(fulmar.PermissionDenied, "behind")
	ways := map[string]fulmar.StreamInterceptor{
		"fails": func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			if err := next(ctx, call); err != nil {
				return err
			}
			return refused
		},
		"opens it twice": func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			if err := next(ctx, call); err != nil {
				return err
			}
			return next(ctx, call)
		},
		"panics": func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			if err := next(ctx, call); err != nil {
				return err
			}
			panic(refused)
		},
		"ends its goroutine": func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			if err := next(ctx, call); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		},
		"ends the goroutine that sends": func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			call.OnSend(func(any) error { runtime.Goexit(); return nil })
			return next(ctx, call)
		},
	}
	for what, interceptor := range ways {
		ends := new(atomic.Int32)
		noting := func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
			call.OnEnd(func(err error) {
				if err != nil {
					ends.Add(1)
				}
			})
			return interceptor(ctx, call, next)
		}
		for _, way := range directWays {
			t.Run(what+"/"+way, func(t *testing.T) {
				ends.Store(0)
				synctest.Test(t, func(t *testing.T) { failBehindNext(t, way, noting, ends) })
			})
		}
	}
}

// failBehindNext opens streams that an interceptor spoils. ends is how many have told of that.
func failBehindNext(t *testing.T, way string, interceptor fulmar.StreamInterceptor, ends *atomic.Int32) {
	s := newStreaming(t, way, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{StreamInterceptors: []fulmar.StreamInterceptor{interceptor}})
	const streams = 10
	for range streams {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			if list, err := s.api.List(t.Context(), &testservice.Item{}); err == nil {
				t.Errorf("got a stream: %v", list)
			}
		}()
		<-ended
	}
	synctest.Wait()
	if n := s.server.Stats().Calls; n != 0 {
		t.Errorf("%d of %d calls run for streams that nobody has", n, streams)
	}
	if n := ends.Load(); n != streams {
		t.Errorf("%d of %d streams have told that they failed", n, streams)
	}
}
