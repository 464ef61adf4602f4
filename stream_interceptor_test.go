package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
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
