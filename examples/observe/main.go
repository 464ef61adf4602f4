// Command observe serves greetings, calls itself, and tells what an observer is told:
// the phases of one call on both sides, then what was counted, then the log.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/observe/gen/greeter"
	"github.com/fulmar-rpc/fulmar/observe"
)

//go:generate fulmar gen -o gen greeter.thrift

type hello struct{}

func (hello) Greet(_ context.Context, name string) (string, error) {
	if name == "" {
		return "", fulmar.NewError(fulmar.InvalidArgument, "nobody to greet")
	}
	return "Hello, " + name + "!", nil
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "observe:", err)
		os.Exit(1)
	}
}

// story keeps the phases of each call.
type story struct {
	mu     sync.Mutex
	phases map[*observe.Call][]string
}

func (s *story) observer() observe.Observer {
	return observe.Observer{Event: func(call *observe.Call, _ any, event observe.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.phases[call] = append(s.phases[call], event.Phase.String())
	}}
}

// tell writes the phases of the calls at one side.
func (s *story) tell(out io.Writer, side observe.Side) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for call, phases := range s.phases {
		if call.Side == side {
			fmt.Fprintf(out, "%v %s.%s: %q\n", side, call.Service, call.Method, phases)
		}
	}
}

// run serves, calls and reports.
func run(ctx context.Context, out io.Writer) error {
	told := &story{phases: map[*observe.Call][]string{}}
	metrics := observe.NewMetrics(observe.MetricsConfig{})
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	if err := call(ctx, []observe.Observer{told.observer()}, "Ada"); err != nil {
		return err
	}
	told.tell(out, observe.Client)
	told.tell(out, observe.Server)
	if err := call(ctx, []observe.Observer{metrics.Observer(), observe.Log(logger, observe.LogConfig{Slow: time.Minute})}, "Ada", "Grace", ""); err != nil {
		return err
	}
	for _, s := range metrics.Snapshot() {
		fmt.Fprintf(out, "%v %s.%s: %d calls, %d good, %d %v, p99 known: %v\n", s.Side, s.Service, s.Method, s.Latency.Count(),
			s.Calls[0], s.Calls[fulmar.InvalidArgument], fulmar.InvalidArgument, s.Latency.Quantile(0.99) > 0)
	}
	return nil
}

// call serves greetings and asks for some, with the same observers at both ends.
func call(ctx context.Context, observers []observe.Observer, names ...string) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Observers: observers})
	if err != nil {
		return err
	}
	greeter.RegisterGreeterServer(server, hello{})
	address, err := server.Listen()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String(), Observers: observers})
	if err == nil {
		api := greeter.NewGreeterClient(client)
		for _, name := range names {
			// What becomes of it the observers tell.
			_, _ = api.Greet(ctx, name)
		}
		err = client.Close()
	}
	// When Serve has returned, every call has ended for observers too.
	stop()
	if failed := <-served; err == nil {
		err = failed
	}
	return err
}

// withoutTimes leaves out of log lines what is different each time.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "took", "call", "peer", "reason":
		return slog.Attr{}
	}
	return a
}
