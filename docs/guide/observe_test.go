package guide_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// countedServer is a server with counters and a log.
func countedServer(logger *slog.Logger) (*fulmar.Server, *observe.Metrics, error) {
	metrics := observe.NewMetrics(observe.MetricsConfig{})
	observers := []observe.Observer{
		metrics.Observer(),
		observe.Log(logger, observe.LogConfig{Slow: 200 * time.Millisecond}),
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Observers: observers})
	return server, metrics, err
}

// summary prints what was counted.
func summary(out io.Writer, metrics *observe.Metrics) {
	for _, s := range metrics.Snapshot() {
		failed := s.Latency.Count() - s.Calls[0] - s.Declared
		fmt.Fprintf(out, "%v %s.%s: %d calls, %d failed, p99 %v\n", s.Side, s.Service, s.Method,
			s.Latency.Count(), failed, s.Latency.Quantile(0.99))
	}
}

// retriesTo returns an observer of attempts that failed.
func retriesTo(out io.Writer) observe.Observer {
	retries := observe.Observer{
		Phases: observe.SetOf(observe.PhaseRetried),
		Event: func(call *observe.Call, _ any, event observe.Event) {
			fmt.Fprintf(out, "%s.%s: attempt %d at %s failed: %v\n", call.Service, call.Method, event.Attempt, event.Address, event.Err)
		},
	}
	return retries
}

// span is a part of a trace.
type span struct {
	id, parent, name string
	start            time.Time
	took             time.Duration
	err              error
}

type spanKey struct{}

// tracer returns an observer that makes a span for each call.
func tracer(end func(*span)) observe.Observer {
	return observe.Observer{
		Phases: observe.SetOf(observe.PhaseDone),
		Begin: func(ctx context.Context, call *observe.Call) (context.Context, any) {
			made := &span{id: fmt.Sprintf("%016x", call.ID), name: call.Service + "." + call.Method, start: call.Start}
			if call.Side == observe.Client {
				made.parent, _ = ctx.Value(spanKey{}).(string)
				ctx = fulmar.WithTransient(ctx, "SPAN", made.id)
			} else if served, ok := fulmar.CallFrom(ctx); ok {
				made.parent, _ = served.Metadata().Transient("SPAN")
			}
			return context.WithValue(ctx, spanKey{}, made.id), made
		},
		Event: func(_ *observe.Call, value any, event observe.Event) {
			made := value.(*span)
			made.took, made.err = event.At, event.Err
			end(made)
		},
	}
}

// serveUntil serves until what it returns is called, which waits for its end.
func serveUntil(t *testing.T, server *fulmar.Server) (address string, stop func()) {
	t.Helper()
	listening, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return listening.String(), stop
}

func TestObserve_CountsAndLogs(t *testing.T) {
	var logged, printed bytes.Buffer
	server, metrics, err := countedServer(slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &testservice.Stub{OnNothing: func(context.Context) error { return errors.New("no luck") }})
	address, stop := serveUntil(t, server)
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Observers: []observe.Observer{retriesTo(&printed)}})
	if err != nil {
		t.Fatal(err)
	}
	api := testservice.NewEchoClient(client)
	if _, err := api.Echo(t.Context(), &testservice.Message{}); err != nil {
		t.Error(err)
	}
	if err := api.Nothing(t.Context()); err == nil {
		t.Error("the call succeeded")
	}
	_ = client.Close()
	stop()
	summary(&printed, metrics)
	for _, want := range []string{"server Echo.echo: 1 calls, 0 failed", "server Echo.nothing: 1 calls, 1 failed"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("no %q in %s", want, printed.String())
		}
	}
	if !strings.Contains(logged.String(), `msg="call failed"`) || !strings.Contains(logged.String(), `reason="no luck"`) {
		t.Errorf("logged %s", logged.String())
	}
}

func TestObserve_Traces(t *testing.T) {
	var mu sync.Mutex
	spans := map[string]*span{}
	trace := []observe.Observer{tracer(func(s *span) {
		mu.Lock()
		defer mu.Unlock()
		spans[s.id] = s
	})}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Observers: trace})
	if err != nil {
		t.Fatal(err)
	}
	var behind testservice.EchoClient
	testservice.RegisterEchoServer(server, &testservice.Stub{
		OnVersion: func(ctx context.Context) (string, error) { return "1", behind.Nothing(ctx) },
		OnNothing: func(context.Context) error { return nil },
	})
	address, stop := serveUntil(t, server)
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Observers: trace})
	if err != nil {
		t.Fatal(err)
	}
	behind = testservice.NewEchoClient(client)
	if _, err := behind.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	stop()
	// Four spans: from the innermost each has the one before as its parent.
	names := ""
	for _, s := range spans {
		path := ""
		for at := s; at != nil; at = spans[at.parent] {
			path = at.name + "/" + path
		}
		if len(path) > len(names) {
			names = path
		}
	}
	if want := "Echo.version/Echo.version/Echo.nothing/Echo.nothing/"; names != want || len(spans) != 4 {
		t.Errorf("%d spans, the longest trace is %s, want %s", len(spans), names, want)
	}
}
