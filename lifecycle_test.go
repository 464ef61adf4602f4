package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// TestCall_OnewayDoesNotHoldUpTheNextCall: a server answers in order, so a call
// on the connection of a oneway call would wait for its handler.
func TestCall_OnewayDoesNotHoldUpTheNextCall(t *testing.T) {
	stub := adder()
	stub.OnNotify = func(context.Context, string) error { time.Sleep(time.Minute); return nil }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: time.Second}, stub, func(s *simulation) {
		for range 3 {
			if err := s.api.Notify(context.Background(), "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Errorf("the call after a oneway call: %v", err)
			}
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestCall_GivingUpEndsTheHandler: the handler of a call that nobody waits for
// learns of it.
func TestCall_GivingUpEndsTheHandler(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		},
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-started; cancel() }()
	if err := api.Nothing(ctx); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("Nothing: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context ended with %v", err)
	}
}

// TestCall_ContextEndsWithTheCall: what a handler hangs on its context does not
// live as long as the connection.
func TestCall_ContextEndsWithTheCall(t *testing.T) {
	contexts := make(chan context.Context, 1)
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(ctx context.Context) error { contexts <- ctx; return nil },
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	if err := api.Nothing(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-(<-contexts).Done()
}

// TestServer_StopIsBoundedWhateverHandlersDo: a handler that ignores its context
// and whose peer has gone cannot hold Serve.
func TestServer_StopIsBoundedWhateverHandlersDo(t *testing.T) {
	for _, how := range []string{"stop", "close"} {
		stub := &testservice.Stub{OnNothing: func(context.Context) error { time.Sleep(time.Hour); return nil }}
		simulate(t, simnet.Config{}, fulmar.ServerConfig{DrainTimeout: 3 * time.Second}, fulmar.ClientConfig{Timeout: time.Second}, stub, func(s *simulation) {
			if err := s.api.Nothing(context.Background()); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Errorf("Nothing: %v", err)
			}
			start := time.Now()
			if how == "stop" {
				s.stop()
			} else if err := s.server.Close(); err != nil {
				t.Error(err)
			}
			err := <-s.served
			if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "1 calls were still running") || took > 4*time.Second {
				t.Errorf("%s: Serve returned %v after %v", how, err, took)
			}
			s.served <- nil
			time.Sleep(time.Hour) // until the handler is done
		})
	}
}

// TestServer_StopCannotBeHeldUp: a peer that never stops sending calls does not
// keep a stopping server.
func TestServer_StopCannotBeHeldUp(t *testing.T) {
	stub := adder()
	stub.OnAdd = func(_ context.Context, left, right int32) (int32, error) {
		time.Sleep(time.Millisecond)
		return left + right, nil
	}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		call := frame(addCall(t, 1, 1, 2))
		var peer sync.WaitGroup
		peer.Go(func() {
			for {
				if _, err := conn.Write(call); err != nil {
					return
				}
			}
		})
		peer.Go(func() {
			for b := make([]byte, 1<<16); ; {
				if _, err := conn.Read(b); err != nil {
					return
				}
			}
		})
		time.Sleep(time.Second)
		start := time.Now()
		s.stop()
		err := <-s.served
		if took := time.Since(start); err != nil || took > limits.StopGrace+time.Second {
			t.Errorf("Serve returned %v after %v", err, took)
		}
		s.served <- nil
		_ = conn.Close()
		peer.Wait()
	})
}

func TestServer_CloseBeforeServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(context.Background()); !errors.Is(err, fulmar.ErrServerClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
}

// TestServer_BoundsCallsInProgress: calls whose connection is gone still count.
func TestServer_BoundsCallsInProgress(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(time.Minute); return nil }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxCalls: 5}, fulmar.ClientConfig{Timeout: time.Second}, stub, func(s *simulation) {
		for range 5 {
			if err := s.api.Nothing(context.Background()); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
				t.Errorf("Nothing: %v", err)
			}
		}
		_, err := s.api.Add(context.Background(), 1, 2)
		if e := asError(t, err); e.Origin() != fulmar.OriginRemote || !strings.Contains(e.Message(), "5 calls are running (limit 5)") {
			t.Errorf("a call too many: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestCall_MessageLimitCountsTheHeader: what one side sends, the other accepts,
// to the byte.
func TestCall_MessageLimitCountsTheHeader(t *testing.T) {
	const limit = 1000
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{MaxMessageBytes: limit}, &testservice.Stub{})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, MaxMessageBytes: limit})
		request := &testservice.EchoEchoArgs{Message: &testservice.Message{}}
		reply := &testservice.EchoEchoResult{Success: &testservice.Message{}}
		overhead := thriftwire.AppendedHeaderSize("echo") + max(len(body(t, request)), len(body(t, reply)))
		for text := limit - overhead - 3; text <= limit-overhead+30; text++ {
			_, err := api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", text)})
			if text <= limit-overhead {
				if err != nil {
					t.Errorf("a message of %d bytes: %v", text+overhead, err)
				}
			} else if e := asError(t, err); e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo {
				t.Errorf("a message of %d bytes: %v", text+overhead, err)
			}
		}
	})
}

func TestError_AddressesDoNotLeaveByErrorf(t *testing.T) {
	backend := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 99}, Err: errors.New("refused")}
	cases := map[string]error{
		"plain":       backend,
		"wrapped":     fmt.Errorf("asking: %w", backend),
		"with a code": fulmar.Errorf(fulmar.Unavailable, "asking: %w", backend),
		"joined":      errors.Join(errors.New("two"), fulmar.Errorf(fulmar.Unavailable, "asking %d: %w", 1, fmt.Errorf("x: %w", backend))),
	}
	for name, err := range cases {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error { return err }})
		e := asError(t, dial(t, fulmar.ClientConfig{Target: server.address}).Nothing(context.Background()))
		if strings.Contains(e.Message(), "10.1.2.3") || !strings.Contains(e.Message(), "refused") {
			t.Errorf("%s: the message is %q", name, e.Message())
		}
	}
}

// TestInterceptors_MayTryAgain: an attempt does not see what the one before it
// left behind, and cannot take back that it may have been executed.
func TestInterceptors_MayTryAgain(t *testing.T) {
	attempts := 0
	stub := &testservice.Stub{OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
		if attempts++; attempts == 1 {
			return nil, &testservice.Refused{Reason: "once"}
		}
		return message, nil
	}}
	server := serve(t, fulmar.ServerConfig{}, stub)
	twice := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		if next(ctx, call) == nil {
			return nil
		}
		return next(ctx, call)
	}
	api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{twice}})
	if reply, err := api.Echo(context.Background(), &testservice.Message{Text: "x"}); err != nil || reply.Text != "x" {
		t.Errorf("Echo = %+v, %v", reply, err)
	}

	withdrawn := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		ctx, cancel := context.WithCancel(ctx)
		_ = next(ctx, call)
		cancel()
		return next(ctx, call)
	}
	failing := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error { return errors.New("x") }})
	api = dial(t, fulmar.ClientConfig{Target: failing.address, Interceptors: []fulmar.UnaryInterceptor{withdrawn}})
	if e := asError(t, api.Nothing(context.Background())); e.Executed() != fulmar.ExecutedMaybe {
		t.Errorf("Nothing: %v", e)
	}
}

func TestInterceptors_CannotInventAReply(t *testing.T) {
	silent := func(context.Context, fulmar.Unary, fulmar.UnaryNext) error { return nil }
	server := serve(t, fulmar.ServerConfig{}, adder())
	api := dial(t, fulmar.ClientConfig{Target: server.address, Interceptors: []fulmar.UnaryInterceptor{silent}})
	if sum, err := api.Add(context.Background(), 1, 2); fulmar.CodeOf(err) != fulmar.Internal {
		t.Errorf("Add = %d, %v; want an error", sum, err)
	}
}

// TestClient_DialMayMisbehave: what a user's Dial does wrong costs the call, not
// the process, and no longer than the call's deadline.
func TestClient_DialMayMisbehave(t *testing.T) {
	var release chan struct{}
	dials := map[string]struct {
		dial func(context.Context, string, string) (net.Conn, error)
		want string
	}{
		"ignores its context": {func(context.Context, string, string) (net.Conn, error) {
			<-release
			return nil, errors.New("late")
		}, "no result within"},
		"panics":             {func(context.Context, string, string) (net.Conn, error) { panic("oh") }, "dial panicked: oh"},
		"ends its goroutine": {func(context.Context, string, string) (net.Conn, error) { runtime.Goexit(); return nil, nil }, "dial ended its goroutine"},
		"returns nothing":    {func(context.Context, string, string) (net.Conn, error) { return nil, nil }, "neither a connection nor an error"},
	}
	for name, test := range dials {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				defer close(release)
				api := dial(t, fulmar.ClientConfig{Target: "127.0.0.1:1", Dial: test.dial, MaxConnections: 1, ConnectTimeout: -1})
				for range 2 {
					err := api.Nothing(context.Background(), fulmar.Timeout(20*time.Millisecond))
					if e := asError(t, err); e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Message(), test.want) {
						t.Errorf("Nothing: %v; want %q", err, test.want)
					}
				}
			})
		})
	}
}

// TestServer_Shutdown: it accepts nothing more, lets running calls finish, and
// Serve returns.
func TestServer_Shutdown(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error {
		close(started)
		<-finish
		finished.Store(true)
		return nil
	}})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	called := make(chan error, 1)
	go func() { called <- api.Nothing(context.Background()) }()
	<-started
	stopped := make(chan error, 1)
	go func() {
		err := server.server.Shutdown(context.Background())
		if !finished.Load() {
			err = errors.New("it returned while a call ran")
		}
		stopped <- err
	}()
	refused := false
	for range 10000 {
		conn, err := net.Dial("tcp", server.address)
		if refused = err != nil; refused {
			break
		}
		_ = conn.Close()
	}
	close(finish)
	if !refused {
		t.Error("the server goes on accepting")
	}
	if err := <-called; err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// TestServer_ShutdownHasTheLimitOfItsContext: then it closes what is left.
func TestServer_ShutdownHasTheLimitOfItsContext(t *testing.T) {
	started := make(chan struct{})
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	called := make(chan error, 1)
	go func() { called <- api.Nothing(context.Background()) }()
	<-started
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := server.server.Shutdown(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-called; err == nil {
		t.Error("the call of a closed server succeeded")
	}
	_ = server.stop()
}

func TestServer_ShutdownBeforeServe(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := server.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := server.Serve(context.Background()); !errors.Is(err, fulmar.ErrServerClosed) {
		t.Errorf("Serve afterwards: %v", err)
	}
}

// TestServer_ListenerClosedByItsOwner: a server that nobody can reach any more
// says so, after the calls that run have been answered.
func TestServer_ListenerClosedByItsOwner(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: socket})
	if err != nil {
		t.Fatal(err)
	}
	started, proceed := make(chan struct{}), make(chan struct{})
	testservice.RegisterEchoServer(server, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		close(started)
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(t.Context()) }()
	api := dial(t, fulmar.ClientConfig{Target: socket.Addr().String()})
	go func() { answered <- api.Nothing(context.Background()) }()
	<-started
	socket.Close()
	close(proceed)
	if err := <-answered; err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := <-served; !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), socket.Addr().String()) {
		t.Errorf("Serve = %v", err)
	}
}
