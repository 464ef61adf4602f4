package fulmar_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestBeforeStop_ServesMeanwhile: clients that do not know yet, also new ones, are
// served until it returns, and a call in progress then ends well.
func TestBeforeStop_ServesMeanwhile(t *testing.T) {
	const takes = 3 * time.Second
	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(2 * takes); return nil }
	config := fulmar.ServerConfig{BeforeStop: func(context.Context) error { time.Sleep(takes); return nil }}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{Timeout: -1}, stub, func(s *simulation) {
		long := make(chan error, 1)
		go func() { long <- s.api.Nothing(context.Background()) }()
		synctest.Wait()
		s.stop()
		for range 2 {
			time.Sleep(takes / 3)
			other, err := fulmar.NewClient(fulmar.ClientConfig{Target: simAddress, Dial: s.network.Dial})
			if err != nil {
				t.Fatal(err)
			}
			fill(t, testservice.NewEchoClient(other), 1)
			fill(t, s.api, 1)
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(takes)
		if conn, err := s.network.Dial(context.Background(), "tcp", simAddress); err == nil {
			_ = conn.Close()
			t.Error("the server accepts connections after BeforeStop has returned")
		}
		if err := <-long; err != nil {
			t.Errorf("the call in progress: %v", err)
		}
		if err := <-s.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		s.served <- nil
	})
}

// stopError stops the server and returns what Serve says about it.
func (r *running) stopError() string {
	err := r.stop()
	r.stop = func() error { return nil } // for the end of the test, which expects none
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestBeforeStop_CannotKeepAServerFromStopping, whatever it does; Serve says what went
// wrong.
func TestBeforeStop_CannotKeepAServerFromStopping(t *testing.T) {
	failed := errors.New("the registry is gone")
	for name, test := range map[string]struct {
		hook  func(ctx context.Context) error
		takes time.Duration
		want  string
	}{
		"an error":                     {func(context.Context) error { return failed }, 0, failed.Error()},
		"a panic":                      {func(context.Context) error { panic("no") }, 0, "it panicked: no"},
		"the end of its goroutine":     {func(context.Context) error { runtime.Goexit(); return nil }, 0, "it ended its goroutine"},
		"waiting, but not too long":    {func(ctx context.Context) error { time.Sleep(limits.BeforeStopTimeout - 1); return ctx.Err() }, limits.BeforeStopTimeout - 1, ""},
		"its context":                  {func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return nil }, limits.BeforeStopTimeout, "did not return within"},
		"waiting for longer":           {func(context.Context) error { time.Sleep(time.Hour); return nil }, limits.BeforeStopTimeout, "did not return within"},
		"nothing, as if there is none": {nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, simnet.Config{}, fulmar.ServerConfig{BeforeStop: test.hook}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
				start := time.Now()
				s.stop()
				err := <-s.served
				if took := time.Since(start); took != test.takes {
					t.Errorf("Serve took %v, want %v", took, test.takes)
				}
				switch {
				case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("Serve: %v, want %q", err, test.want)
				case test.want == failed.Error() && !errors.Is(err, failed):
					t.Errorf("Serve: %v does not wrap the hook's error", err)
				}
				s.served <- nil
				time.Sleep(time.Hour)
			})
		})
	}
}

// TestBeforeStop_AlsoWithoutGrace: a server that is gone must leave the registry.
func TestBeforeStop_AlsoWithoutGrace(t *testing.T) {
	for name, end := range map[string]func(server *fulmar.Server, listener net.Listener) error{
		"Close":               func(server *fulmar.Server, _ net.Listener) error { return server.Close() },
		"the listener's end":  func(_ *fulmar.Server, listener net.Listener) error { return listener.Close() },
		"Shutdown, a context": func(server *fulmar.Server, _ net.Listener) error { return server.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := simnet.New(simnet.Config{})
				listener, err := network.Listen(simAddress)
				if err != nil {
					t.Fatal(err)
				}
				calls := 0
				server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener, BeforeStop: func(context.Context) error { calls++; return nil }})
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- server.Serve(context.Background()) }()
				synctest.Wait()
				if err := end(server, listener); err != nil {
					t.Error(err)
				}
				<-served
				if calls != 1 {
					t.Errorf("BeforeStop was called %d times, want once", calls)
				}
			})
		})
	}
}
