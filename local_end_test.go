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
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// timeScenes: deadlines and cancellation.
func timeScenes() map[string]*scene {
	hanging := func(m *meeting) *testservice.Stub {
		stub := adder()
		stub.OnNothing = func(context.Context) error { <-m.release; return nil }
		return stub
	}
	return map[string]*scene{
		"deadline": {stub: hanging, act: func(m *meeting) string {
			defer close(m.release)
			// Connecting must not take the time of the call that is looked at.
			if err := addError(m.api); err != nil {
				return outcome(err)
			}
			timeout, err := waitsForReply(m.t, 50*time.Millisecond, func(timeout time.Duration) error {
				return m.api.Nothing(m.t.Context(), fulmar.Timeout(timeout))
			})
			return strings.TrimSuffix(outcome(err), timeout.String())
		}, want: "deadline exceeded, transport, maybe executed, waiting for the reply: no result within "},
		"deadline of the context": {stub: hanging, act: func(m *meeting) string {
			defer close(m.release)
			ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Millisecond)
			defer cancel()
			err := m.api.Nothing(ctx)
			return fmt.Sprint(fulmar.CodeOf(err), errors.Is(err, context.DeadlineExceeded))
		}, want: "deadline exceeded true"},
		"deadline that has passed": {stub: hanging, act: func(m *meeting) string {
			close(m.release)
			return outcome(m.api.Nothing(m.t.Context(), fulmar.Timeout(0)))
		}, want: "deadline exceeded, transport, not executed, waiting for a connection: the deadline had passed before the call began"},
		"deadline that the handler sees": {
			stub: func(m *meeting) *testservice.Stub {
				return &testservice.Stub{OnNothing: func(ctx context.Context) error {
					deadline, ok := ctx.Deadline()
					m.note("deadline %v within a minute %v", ok, ok && time.Until(deadline) <= time.Minute)
					return nil
				}}
			},
			act:  func(m *meeting) string { return outcome(m.api.Nothing(m.t.Context(), fulmar.Timeout(time.Minute))) },
			want: "deadline true within a minute true\nok",
		},
		"deadline that ends the handler": handlerEndsScene(),
		"cancellation": {
			stub: heldStub,
			act: func(m *meeting) string {
				defer close(m.release)
				ctx, cancel := context.WithCancel(m.t.Context())
				go func() { m.await(1); cancel() }()
				return outcome(m.api.Nothing(ctx))
			},
			want: "held\ncanceled, transport, maybe executed, waiting for the reply: canceled by the caller",
		},
	}
}

// handlerEndsScene: a handler that waits for the end of its context sees the deadline.
func handlerEndsScene() *scene {
	var runs atomic.Bool
	return &scene{
		stub: func(m *meeting) *testservice.Stub {
			runs.Store(false)
			stub := adder()
			stub.OnNothing = func(ctx context.Context) error {
				first := runs.CompareAndSwap(false, true)
				<-ctx.Done()
				if first {
					m.note("handler: ended")
				}
				return ctx.Err()
			}
			return stub
		},
		act: func(m *meeting) string {
			if !carriesHead(m.protocol) {
				return "" // the handler learns of the connection's end only
			}
			// With a connection that is there the request arrives before it is too late.
			if err := addError(m.api); err != nil {
				return outcome(err)
			}
			var code fulmar.Code
			// On a busy machine a call can come too late to be run.
			for timeout := 50 * time.Millisecond; !runs.Load() && timeout < time.Minute; timeout *= 2 {
				code = fulmar.CodeOf(m.api.Nothing(m.t.Context(), fulmar.Timeout(timeout)))
			}
			m.await(1)
			return code.String()
		},
		want: "handler: ended\ndeadline exceeded",
	}
}

// stopScenes: what becomes of calls when a side ends.
func stopScenes() map[string]*scene {
	return map[string]*scene{
		"client closed": {
			stub: heldStub,
			act: func(m *meeting) string {
				defer close(m.release)
				go func() { m.await(1); _ = m.client.Close() }()
				return doNothing(m) + "\n" + doNothing(m)
			},
			want: "held\ncanceled, local, maybe executed, waiting for the reply: client is closed\ncanceled, local, not executed, waiting for a connection: client is closed",
		},
		"server closed": {
			stub: heldStub,
			act: func(m *meeting) string {
				defer close(m.release)
				go func() { m.await(1); _ = m.server.Close() }()
				return outcome(m.api.Nothing(m.t.Context()))
			},
			want: "held\nunavailable, transport, maybe executed, waiting for the reply: the server closed the connection: unexpected EOF",
		},
		"shutdown": {stub: heldStub, act: shutDown, want: "held\nwhile it stops\nok <nil> unavailable transport not executed connecting"},
		"stats": {stub: heldStub, act: func(m *meeting) string {
			return m.whileHeld(func() string { return fmt.Sprint(m.server.Stats().Calls) })
		}, want: "held\n1\nok"},
	}
}

// shutDown stops the server while a call runs, which ends as if nothing was; the next one
// is refused.
func shutDown(m *meeting) string {
	stopped := make(chan error, 1)
	ended := m.whileHeld(func() string {
		go func() { stopped <- m.server.Shutdown(m.t.Context()) }()
		return "while it stops"
	})
	err := <-stopped
	refused := m.api.Nothing(m.t.Context())
	e := asError(m.t, refused)
	// The file of a unix socket is gone, so the system gives another reason for the same
	// error.
	if reason := "dial: connect: connection refused"; m.way != wayUnix && e.Message() != reason {
		m.t.Errorf("%s: %q, want %q", m.way, e.Message(), reason)
	}
	return fmt.Sprintf("%s %v %v %v %v %v", ended, err, e.Code(), e.Origin(), e.Executed(), e.Phase())
}

// localServer serves stub without a socket until the test ends.
func localServer(t *testing.T, config fulmar.ServerConfig, stub *testservice.Stub) *running {
	t.Helper()
	config.LocalOnly = true
	return serveWay(t, config, stub)
}

// TestLocal_SharesNoMemory: the handler changes what it got and keeps it, the caller
// reuses what it sent, and both keep what came back.
func TestLocal_SharesNoMemory(t *testing.T) {
	var kept, given *testservice.Message
	server := localServer(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
			message.Labels["by"] = "handler"
			message.Parts[0].Text = "changed"
			kept = message
			given = &testservice.Message{Text: message.Text, Parts: []testservice.Message{{Text: "given"}}}
			return given, nil
		},
	})
	api := dial(t, fulmar.ClientConfig{Local: server.server})
	sent := &testservice.Message{Text: "sent", Labels: map[string]string{"by": "caller"}, Parts: []testservice.Message{{Text: "part"}}}
	got, err := api.Echo(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	if sent.Labels["by"] != "caller" || sent.Parts[0].Text != "part" {
		t.Errorf("the handler changed what the caller sent: %v", sent)
	}
	given.Parts[0].Text = "changed later"
	sent.Text, sent.Labels["by"], sent.Parts[0].Text = "reused", "reused", "reused"
	if got.Text != "sent" || got.Parts[0].Text != "given" {
		t.Errorf("the caller's result changed: %v", got)
	}
	for range 100 {
		// The memory of the messages is used again.
		if _, err := api.Echo(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
	}
	if got.Text != "sent" || got.Parts[0].Text != "given" {
		t.Errorf("the caller's result changed: %v", got)
	}
	if kept.Text != "reused" || kept.Labels["by"] != "handler" {
		t.Errorf("what the handler kept changed: %v", kept)
	}
}

// TestLocal_AbandonedCallsKeepTheirMemory: callers give up and reuse what they sent
// while their handlers still read it; the race detector and the invariants look on.
func TestLocal_AbandonedCallsKeepTheirMemory(t *testing.T) {
	const callers, calls = 8, 50
	server := localServer(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnScoped: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
			for range 100 {
				runtime.Gosched()
				if strings.Trim(message.Text, message.Text[:1]) != "" {
					return nil, fulmar.NewError(fulmar.Internal, "the request changed: "+message.Text)
				}
			}
			return message, nil
		},
	})
	api := dial(t, fulmar.ClientConfig{Local: server.server})
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			message := &testservice.Message{}
			for n := range calls {
				message.Text = strings.Repeat(string(rune('a'+(i+n)%26)), 1000)
				ctx, cancel := context.WithCancel(t.Context())
				if n%2 == 0 {
					go cancel()
				}
				back, err := api.Scoped(ctx, message)
				cancel()
				if code := fulmar.CodeOf(err); err == nil && back.Text != message.Text || err != nil && code != fulmar.Canceled {
					t.Errorf("%v", err)
				}
			}
		})
	}
	group.Wait()
	if late := server.server.Stats().BufferedBytes; late < 0 {
		t.Errorf("%d bytes are counted", late)
	}
}

// TestLocal_WaitsForServe: as a connection does that is not accepted yet; before Listen
// and after Close calls are refused.
func TestLocal_WaitsForServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		testservice.RegisterEchoServer(server, adder())
		api := dial(t, fulmar.ClientConfig{Local: server})
		if got, want := outcome(addError(api)), "unavailable, transport, not executed, connecting: dial: connect: connection refused"; got != want {
			t.Errorf("before Listen: %s", got)
		}
		if address, err := server.Listen(); err != nil || address.String() != "local" || address.Network() != "local" {
			t.Errorf("Listen: %v, %v", address, err)
		}
		if e := asError(t, addError(api)); e.Code() != fulmar.DeadlineExceeded || e.Executed() != fulmar.ExecutedNo {
			t.Errorf("nobody serves: %v", e)
		}
		first := make(chan error, 1)
		go func() { first <- addError(api) }()
		synctest.Wait()
		served := make(chan error, 1)
		go func() { served <- server.Serve(context.Background()) }()
		if err := <-first; err != nil {
			t.Errorf("a call that waited: %v", err)
		}
		_ = server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if got := fulmar.CodeOf(addError(api)); got != fulmar.Unavailable {
			t.Errorf("after Close: %v", got)
		}
	})
}

func addError(api testservice.EchoClient) error {
	_, err := api.Add(context.Background(), 1, 2)
	return err
}

// TestLocal_StopHasALimit: a handler that hangs holds up neither the server nor the
// caller.
func TestLocal_StopHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true, DrainTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		testservice.RegisterEchoServer(server, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}})
		if _, err := server.Listen(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served, result := make(chan error, 1), make(chan error, 1)
		go func() { served <- server.Serve(ctx) }()
		api := dial(t, fulmar.ClientConfig{Local: server})
		go func() { result <- api.Nothing(context.Background(), fulmar.Timeout(-1)) }()
		synctest.Wait()
		stop()
		synctest.Wait()
		if got := fulmar.CodeOf(api.Nothing(context.Background())); got != fulmar.Unavailable {
			t.Errorf("while it drains: %v", got)
		}
		if err := <-served; err == nil || !strings.Contains(err.Error(), "1 calls were still running after 3s") {
			t.Errorf("Serve: %v", err)
		}
		if e := asError(t, <-result); e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedMaybe {
			t.Errorf("the call that was cut: %v", e)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context ended with %v", err)
		}
	})
}

// TestLocal_CancellationReachesTheHandler, without a deadline and without a connection.
func TestLocal_CancellationReachesTheHandler(t *testing.T) {
	began, ended := make(chan bool), make(chan error, 1)
	server := localServer(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil
	}})
	client := dialAny(t, fulmar.ClientConfig{Local: server.server})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	err := testservice.NewEchoClient(client).Nothing(ctx, fulmar.Timeout(-1))
	if fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("the call: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler: %v", err)
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if stats := client.Stats(); stats.LateReplies != 1 || stats.Connections != 0 {
		t.Errorf("%+v, want the one reply that came too late", stats)
	}
}

// TestLocal_BoundsWaitingCalls as MaxWaiting says.
func TestLocal_BoundsWaitingCalls(t *testing.T) {
	var held holder
	release := held.begin()
	server := localServer(t, fulmar.ServerConfig{}, held.stub())
	api := dial(t, fulmar.ClientConfig{Local: server.server, MaxWaiting: 1})
	first := make(chan error, 1)
	go func() { first <- api.Nothing(context.Background()) }()
	for held.started.Load() == 0 {
		runtime.Gosched()
	}
	if got, want := outcome(api.Nothing(context.Background())), "resource exhausted, local, not executed, waiting for a connection: 1 calls already wait: limit reached"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestLocal_ConfigurationsThatContradict(t *testing.T) {
	server := &fulmar.Server{}
	dialer := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	for want, err := range map[string]error{
		"Target and Local are both set":           fulmar.ClientConfig{Local: server, Target: "a:1"}.Validate(),
		"Dial and Local are both set":             fulmar.ClientConfig{Local: server, Dial: dialer}.Validate(),
		"neither Address nor Listener can be set": fulmar.ServerConfig{LocalOnly: true, Address: ":1"}.Validate(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func localOnlyField() field[fulmar.ServerConfig] {
	return field[fulmar.ServerConfig]{
		observe: func(t *testing.T, config fulmar.ServerConfig) any {
			if !config.LocalOnly {
				config.Address = "127.0.0.1:0"
			}
			return listens(t, config).Network()
		},
		settings: []setting{{nil, "tcp"}, {true, "local"}},
	}
}

// localField: a call to a server that serves, or to one of this process that does not.
func localField() field[fulmar.ClientConfig] {
	idle, _ := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	return field[fulmar.ClientConfig]{
		observe: func(t *testing.T, config fulmar.ClientConfig) any {
			if config.Local == nil {
				config.Target = serve(t, fulmar.ServerConfig{}, adder()).address
			}
			return fulmar.CodeOf(addError(dial(t, config)))
		},
		settings: []setting{{nil, fulmar.Code(0)}, {idle, fulmar.Unavailable}},
	}
}

// TestLocal_AnswersThatNobodyWantsAreNobodyElses: the server answers a call that its
// caller takes for oneway.
func TestLocal_AnswersThatNobodyWantsAreNobodyElses(t *testing.T) {
	server := localServer(t, fulmar.ServerConfig{}, adder())
	client := dialAny(t, fulmar.ClientConfig{Local: server.server})
	api := testservice.NewEchoClient(client)
	oneway, err := fulmar.RawMethod("Echo", "add", true)
	if err != nil {
		t.Fatal(err)
	}
	const calls = 200
	for range calls {
		request := fulmar.Raw{0}
		if err := client.Call(t.Context(), oneway, &request, nil); err != nil {
			t.Fatal(err)
		}
		if sum, err := api.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Fatalf("the call after it: %d, %v", sum, err)
		}
	}
	if err := server.stop(); err != nil {
		t.Error(err)
	}
	if late := client.Stats().LateReplies; late != calls {
		t.Errorf("%d answers were not wanted, want %d", late, calls)
	}
}
