package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// recorder keeps everything that it is told.
type recorder struct {
	mu          sync.Mutex
	calls       []*observe.Call
	events      map[*observe.Call][]observe.Event
	connections []observe.Connection
	problems    []string
}

func (r *recorder) observer() observe.Observer {
	return observe.Observer{Begin: r.begin, Event: r.event, Connection: r.connection}
}

func (r *recorder) begin(ctx context.Context, call *observe.Call) (context.Context, any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return ctx, call
}

func (r *recorder) event(call *observe.Call, value any, event observe.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value != call {
		r.problems = append(r.problems, fmt.Sprintf("%v: the value is %v", event.Phase, value))
	}
	if r.events == nil {
		r.events = map[*observe.Call][]observe.Event{}
	}
	r.events[call] = append(r.events[call], event)
}

func (r *recorder) connection(connection observe.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connections = append(r.connections, connection)
}

// phases returns the phases of the i-th call.
func (r *recorder) phases(i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, event := range r.events[r.calls[i]] {
		name := event.Phase.String()
		if event.Connection != observe.UseNone {
			name += " " + event.Connection.String()
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// done returns the last event of the i-th call.
func (r *recorder) done(t *testing.T, i int) observe.Event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events[r.calls[i]]
	if n := slices.IndexFunc(events, func(e observe.Event) bool { return e.Phase == observe.PhaseDone }); n < 0 || n != len(events)-1 {
		t.Fatalf("call %d: PhaseDone is event %d of %d", i, n, len(events))
	}
	return events[len(events)-1]
}

// check looks for what must hold of all events.
func (r *recorder) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range r.problems {
		t.Error(problem)
	}
	seen := map[uint64]bool{}
	for i, call := range r.calls {
		if call.ID == 0 || seen[call.ID] {
			t.Errorf("call %d has the id %x", i, call.ID)
		}
		seen[call.ID] = true
		events := r.events[call]
		for n, event := range events {
			// The server learns of a call when its message is complete.
			if early := event.Phase == observe.PhaseFirstByte || event.Phase == observe.PhaseReceived; early && call.Side == observe.Server {
				continue
			}
			if n > 0 && event.At < events[n-1].At {
				t.Errorf("call %d: %v at %v comes behind %v at %v", i, event.Phase, event.At, events[n-1].Phase, events[n-1].At)
			}
		}
	}
}

const (
	clientPhases = "started, picked, encoded, connected %s, written, first byte, received, decoded, done"
	serverPhases = "started, first byte, received, decoded, handled, encoded, written, done"
)

func TestObservers_TellThePhasesOfACall(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		var atServer, atClient recorder
		server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{atServer.observer()}}, adder())
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, Observers: []observe.Observer{atClient.observer()}})
		api := testservice.NewEchoClient(client)
		for range 3 {
			if sum, err := api.Add(t.Context(), 40, 2); sum != 42 || err != nil {
				t.Fatalf("Add = %d, %v", sum, err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := server.stop(); err != nil {
			t.Fatal(err)
		}
		later := "pooled"
		if protocol == fulmar.TTHeader || protocol == fulmar.TTHeaderFramed {
			later = "shared"
		}
		for i, use := range []string{"dialled", later, later} {
			if got, want := atClient.phases(i), fmt.Sprintf(clientPhases, use); got != want {
				t.Errorf("client, call %d:\n%s, want\n%s", i, got, want)
			}
			if got := atServer.phases(i); got != serverPhases {
				t.Errorf("server, call %d:\n%s, want\n%s", i, got, serverPhases)
			}
			out, in := atClient.done(t, i), atServer.done(t, i)
			if out.BytesOut == 0 || out.BytesIn == 0 || out.BytesOut != in.BytesIn || out.BytesIn != in.BytesOut {
				t.Errorf("call %d: the client sent %d and received %d bytes, the server received %d and sent %d", i, out.BytesOut, out.BytesIn, in.BytesIn, in.BytesOut)
			}
			if out.Attempt != 1 || out.Address != server.address || out.Err != nil || out.Code != 0 {
				t.Errorf("call %d ended in %+v", i, out)
			}
		}
		if call := atServer.calls[0]; call.Service != "Echo" || call.Method != "add" || call.Undefined || call.Oneway || call.Protocol != protocol.String() || call.Peer == "" {
			t.Errorf("the server's call is %+v", call)
		}
		if call := atClient.calls[0]; call.Service != "Echo" || call.Method != "add" || call.Undefined || call.Protocol != protocol.String() || call.Peer != server.address {
			t.Errorf("the client's call is %+v", call)
		}
		atClient.check(t)
		atServer.check(t)
	})
}

func TestObservers_TellHowCallsEnd(t *testing.T) {
	stub := &testservice.Stub{
		OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
			switch message.Text {
			case "declared":
				return nil, &testservice.Refused{Reason: "no"}
			case "business":
				return nil, fulmar.NewBusinessError(7, "limit", nil)
			case "panic":
				panic("oops")
			case "goexit":
				runtime.Goexit()
			case "nil":
				return nil, nil
			}
			return nil, fulmar.NewError(fulmar.NotFound, "nothing there")
		},
	}
	cases := map[string]struct{ client, server string }{
		"declared": {"unknown, declared true, remote, yes", "unknown, declared true, local, yes"},
		"business": {"unknown, declared true, remote, yes", "unknown, declared true, local, yes"},
		"panic":    {"internal, declared false, remote, yes", "internal, declared false, local, yes"},
		"goexit":   {"internal, declared false, remote, yes", "internal, declared false, local, yes"},
		"nil":      {"internal, declared false, remote, yes", "internal, declared false, local, yes"},
		"error":    {"not found, declared false, remote, yes", "not found, declared false, local, yes"},
	}
	outcome := func(e observe.Event) string {
		return fmt.Sprintf("%v, declared %v, %s, %s", e.Code, e.Declared, e.Origin, e.Executed)
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var atServer, atClient recorder
			server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{atServer.observer()}}, stub)
			api := dial(t, fulmar.ClientConfig{Target: server.address, Observers: []observe.Observer{atClient.observer()}})
			if _, err := api.Echo(t.Context(), &testservice.Message{Text: name}); err == nil {
				t.Error("the call succeeded")
			}
			if err := server.stop(); err != nil {
				t.Fatal(err)
			}
			if got := outcome(atClient.done(t, 0)); got != test.client {
				t.Errorf("client: %s, want %s", got, test.client)
			}
			if got := outcome(atServer.done(t, 0)); got != test.server {
				t.Errorf("server: %s, want %s", got, test.server)
			}
			if got := atServer.done(t, 0).BytesOut; got == 0 {
				t.Error("the answer has no length")
			}
		})
	}
}

// TestObservers_SeeRefusedCalls: with names only if they can be names.
func TestObservers_SeeRefusedCalls(t *testing.T) {
	var atServer recorder
	server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{atServer.observer()}}, adder())
	client := dialAny(t, fulmar.ClientConfig{Target: server.address})
	method, err := fulmar.RawMethod("Nobody", "knows", false)
	if err != nil {
		t.Fatal(err)
	}
	request, reply := fulmar.Raw{0}, fulmar.Raw{}
	if err := client.Call(t.Context(), method, &request, &reply); fulmar.CodeOf(err) != fulmar.Unimplemented {
		t.Errorf("an unknown method: %v", err)
	}
	conn := connect(t, server.address)
	write(t, conn, frame(message(1, "evil\n\x1b[2J", 1, []byte{0})))
	readFrame(t, conn)
	_ = conn.Close()
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		service, method string
		code            fulmar.Code
	}{{"Nobody", "knows", fulmar.Unimplemented}, {"", "", fulmar.InvalidArgument}} {
		call, done := atServer.calls[i], atServer.done(t, i)
		if call.Service != want.service || call.Method != want.method || !call.Undefined || fulmar.Code(done.Code) != want.code || done.Executed != "no" {
			t.Errorf("call %d is %q.%q, %+v", i, call.Service, call.Method, done)
		}
	}
}

func TestObservers_SeeAttempts(t *testing.T) {
	var seen recorder
	withSeveral(t, 2, fulmar.ClientConfig{Observers: []observe.Observer{seen.observer()}}, func(s *several) {
		s.serve(adder(), s.addresses[1])
		for range 64 { // which of two it is is a matter of chance
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
		}
	})
	const again = "started, picked, encoded, retried, picked, encoded, connected "
	found := -1
	for i := range seen.calls {
		if strings.HasPrefix(seen.phases(i), again) {
			found = i
		}
	}
	if found < 0 {
		t.Fatalf("no call was tried again; the first: %s", seen.phases(0))
	}
	events := seen.events[seen.calls[found]]
	if last := events[len(events)-1]; last.Attempt != 2 || last.Address != "server1:1" || last.Err != nil {
		t.Errorf("it ended in %+v", last)
	}
	if retried := events[3]; retried.Attempt != 1 || retried.Address != "server0:1" || fulmar.CodeOf(retried.Err) != fulmar.Unavailable {
		t.Errorf("it was tried again after %+v", retried)
	}
	failed := slices.ContainsFunc(seen.connections, func(c observe.Connection) bool {
		return c.Kind == observe.ConnectionFailed && c.Peer == "server0:1" && c.Err != nil && c.Side == observe.Client
	})
	if !failed {
		t.Errorf("nothing tells of the connection that failed: %+v", seen.connections)
	}
}

func TestObservers_SeeDeadlines(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader} {
		var seen recorder
		var hold holder
		config := fulmar.ClientConfig{Protocol: protocol, Observers: []observe.Observer{seen.observer()}}
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, hold.stub(), func(s *simulation) {
			defer hold.begin()()
			_ = s.api.Nothing(context.Background(), fulmar.Timeout(time.Second))
		})
		done := seen.done(t, 0)
		if fulmar.Code(done.Code) != fulmar.DeadlineExceeded || done.Executed != "maybe" || done.Origin != "transport" || done.At != time.Second || done.BytesOut == 0 {
			t.Errorf("%v: it ended in %+v", protocol, done)
		}
		if got := seen.phases(0); got != "started, picked, encoded, connected dialled, written, done" {
			t.Errorf("%v: %s", protocol, got)
		}
	}
}

// spanKey is what a tracer keeps in the context.
type spanKey struct{}

// TestObservers_TracersGetTheirContextThrough: the context of Begin reaches
// interceptors and handlers, and what it carries travels.
func TestObservers_TracersGetTheirContextThrough(t *testing.T) {
	tracer := observe.Observer{Begin: func(ctx context.Context, call *observe.Call) (context.Context, any) {
		parent, _ := ctx.Value(spanKey{}).(string)
		if call.Side == observe.Server {
			served, _ := fulmar.CallFrom(ctx)
			parent, _ = served.Metadata().Transient("TRACE")
		}
		span := parent + "/" + call.Side.String() + " " + call.Method
		ctx = context.WithValue(ctx, spanKey{}, span)
		if call.Side == observe.Client {
			ctx = fulmar.WithTransient(ctx, "TRACE", span)
		}
		return ctx, nil
	}}
	seen := make(chan string, 2)
	look := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		span, _ := ctx.Value(spanKey{}).(string)
		seen <- span
		return next(ctx, call)
	}
	back := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{tracer}}, &testservice.Stub{OnVersion: func(ctx context.Context) (string, error) {
		span, _ := ctx.Value(spanKey{}).(string)
		return span, nil
	}})
	behind := dial(t, fulmar.ClientConfig{Target: back.address, Observers: []observe.Observer{tracer}})
	front := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{tracer}, Interceptors: []fulmar.UnaryInterceptor{look}}, &testservice.Stub{
		OnVersion: func(ctx context.Context) (string, error) { return behind.Version(ctx) },
	})
	api := dial(t, fulmar.ClientConfig{Target: front.address, Observers: []observe.Observer{tracer}, Interceptors: []fulmar.UnaryInterceptor{look}})
	got, err := api.Version(context.WithValue(t.Context(), spanKey{}, "root"))
	if want := "root/client version/server version/client version/server version"; got != want || err != nil {
		t.Errorf("the span of the last handler is %q, %v; want %q", got, err, want)
	}
	if first, second := <-seen, <-seen; first != "root/client version" || second != "root/client version/server version" {
		t.Errorf("interceptors saw %q and %q", first, second)
	}
}

// TestObservers_PanicsHarmNoCall: each function panics in each call, and the
// observers behind go on.
func TestObservers_PanicsHarmNoCall(t *testing.T) {
	bad := observe.Observer{
		Begin:      func(context.Context, *observe.Call) (context.Context, any) { panic("begin is broken") },
		Connection: func(observe.Connection) { panic("connection is broken") },
	}
	worse := observe.Observer{Event: func(*observe.Call, any, observe.Event) { panic("event is broken") }}
	heard := &logRecorder{}
	var atServer, atClient recorder
	server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{bad, worse, atServer.observer()}}, adder())
	api := dial(t, fulmar.ClientConfig{
		Target: server.address, Observers: []observe.Observer{bad, worse, atClient.observer()}, Logger: slog.New(slog.NewTextHandler(heard, nil)),
	})
	const calls = 5 * limits.PeerLogsPerSecond
	for range calls {
		if sum, err := api.Add(t.Context(), 40, 2); sum != 42 || err != nil {
			t.Fatalf("Add = %d, %v", sum, err)
		}
	}
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	for side, log := range map[string]string{"client": heard.String(), "server": server.log.String()} {
		lines := strings.Count(log, "panic in an observer")
		if lines == 0 || lines > calls || !strings.Contains(log, "is broken") || !strings.Contains(log, "observers_test.go") {
			t.Errorf("%s: %d lines for %d panics: %.500s", side, lines, 10*calls, log)
		}
	}
	if n, m := len(atClient.calls), len(atServer.calls); n != calls || m != calls {
		t.Errorf("the observers behind saw %d and %d calls", n, m)
	}
	for i := range calls {
		atClient.done(t, i)
		atServer.done(t, i)
	}
}

func TestObservers_SeeConnections(t *testing.T) {
	var atServer, atClient recorder
	server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{atServer.observer()}}, adder())
	client := dialAny(t, fulmar.ClientConfig{Target: server.address, Observers: []observe.Observer{atClient.observer()}})
	if _, err := testservice.NewEchoClient(client).Add(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, server.address)
	write(t, conn, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	kinds := func(r *recorder) map[string]int {
		counts := map[string]int{}
		for _, c := range r.connections {
			counts[fmt.Sprint(c.Side, " ", c.Kind, " ", c.Err == nil)]++
			if c.Peer == "" {
				t.Errorf("no peer: %+v", c)
			}
		}
		return counts
	}
	if got := fmt.Sprint(kinds(&atClient)); got != "map[client closed true:1 client opened true:1]" {
		t.Errorf("client: %s", got)
	}
	if got := fmt.Sprint(kinds(&atServer)); got != "map[server closed false:1 server closed true:1 server opened true:2 server refused false:1]" {
		t.Errorf("server: %s", got)
	}
}

// TestObservers_IdleConnectionsDidNotBreak: closing them is as it should be, and one
// whose peer is too slow is not.
func TestObservers_IdleConnectionsDidNotBreak(t *testing.T) {
	var seen recorder
	config := fulmar.ServerConfig{IdleTimeout: time.Minute, FrameTimeout: time.Second, Observers: []observe.Observer{seen.observer()}}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		for _, bytes := range [][]byte{nothingCall(), nothingCall()[:9]} {
			conn := s.connect()
			write(t, conn, bytes)
			if closedAfter(t, conn, time.Now()) == never {
				t.Error("the server did not close the connection")
			}
		}
	})
	var closed []observe.Connection
	for _, c := range seen.connections {
		if c.Kind == observe.ConnectionClosed {
			closed = append(closed, c)
		}
	}
	if len(closed) != 2 || closed[0].Err != nil || closed[1].Err == nil || closed[0].Took < time.Minute {
		t.Errorf("closed: %+v", closed)
	}
}

// TestObservers_BrokenConnectionsSayWhy: the server ends while a call runs.
func TestObservers_BrokenConnectionsSayWhy(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader} {
		var seen recorder
		var server *running
		server = serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error { return server.server.Close() }})
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, Observers: []observe.Observer{seen.observer()}})
		if err := testservice.NewEchoClient(client).Nothing(t.Context()); err == nil {
			t.Error("the call succeeded")
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if last := seen.connections[len(seen.connections)-1]; last.Kind != observe.ConnectionClosed || last.Err == nil || last.Took <= 0 {
			t.Errorf("%v: the last event is %+v", protocol, last)
		}
	}
}

// TestObservers_CostOneAllocation: on either side, for what somebody who hears of
// everything may keep. Where nobody listens that memory is used again.
func TestObservers_CostOneAllocation(t *testing.T) {
	if assert.Enabled {
		t.Skip("builds with checks keep less for later calls")
	}
	var bytes atomic.Int64
	listening := observe.Observer{
		Begin:      func(ctx context.Context, call *observe.Call) (context.Context, any) { return ctx, call },
		Event:      func(_ *observe.Call, _ any, e observe.Event) { bytes.Add(int64(e.Bytes)) },
		Connection: func(observe.Connection) {},
	}
	metrics := observe.NewMetrics(observe.MetricsConfig{})
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		per := func(observers ...observe.Observer) float64 {
			server := serve(t, fulmar.ServerConfig{Observers: observers}, adder())
			api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, Observers: observers})
			least := math.Inf(1)
			// The garbage collector empties pools now and then.
			for range 3 {
				least = min(least, testing.AllocsPerRun(200, func() {
					if _, err := api.Add(context.Background(), 1, 2); err != nil {
						t.Error(err)
					}
				}))
			}
			return least
		}
		without, with := per(), per(metrics.Observer())
		if with > without+2 {
			t.Errorf("a call allocates %v times, %v where it is counted", without, with)
		}
		if with := per(listening, metrics.Observer()); with > without+2 {
			t.Errorf("a call allocates %v times, %v where all is told", without, with)
		}
	})
}

func TestObservers_ConfigIsChecked(t *testing.T) {
	many := slices.Repeat([]observe.Observer{{Event: func(*observe.Call, any, observe.Event) {}}}, limits.Observers)
	if err := (fulmar.ServerConfig{Observers: many}).Validate(); err != nil {
		t.Errorf("%d observers: %v", len(many), err)
	}
	many = append(many, observe.Observer{})
	for _, err := range []error{fulmar.ServerConfig{Observers: many}.Validate(), fulmar.ClientConfig{Target: "a:1", Observers: many}.Validate()} {
		if err == nil || !strings.Contains(err.Error(), "Observers: 7 observers (limit 6)") || !strings.Contains(err.Error(), "Observers[6] has no function") {
			t.Errorf("Validate: %v", err)
		}
	}
	if err := (fulmar.ServerConfig{DecodedInterceptors: []fulmar.UnaryInterceptor{nil}}).Validate(); err == nil {
		t.Error("a nil interceptor is accepted")
	}
}

// TestObservers_SeePanicsOfInterceptors: the caller gets the panic, and the call
// ends for observers.
func TestObservers_SeePanicsOfInterceptors(t *testing.T) {
	var seen recorder
	client := dialAny(t, fulmar.ClientConfig{
		Target: "127.0.0.1:1", Observers: []observe.Observer{seen.observer()},
		Interceptors: []fulmar.UnaryInterceptor{func(context.Context, fulmar.Unary, fulmar.UnaryNext) error { panic("interceptor") }},
	})
	mustPanic(t, func() { _ = testservice.NewEchoClient(client).Nothing(t.Context()) })
	if done := seen.done(t, 0); done.Err == nil || fulmar.Code(done.Code) != fulmar.Internal {
		t.Errorf("it ended in %+v", done)
	}
	denied := errors.New("denied")
	refusing := dialAny(t, fulmar.ClientConfig{
		Target: "127.0.0.1:1", Observers: []observe.Observer{seen.observer()},
		Interceptors: []fulmar.UnaryInterceptor{func(context.Context, fulmar.Unary, fulmar.UnaryNext) error { return denied }},
	})
	_ = testservice.NewEchoClient(refusing).Nothing(t.Context())
	if done := seen.done(t, 1); done.Err != denied || done.Declared || done.Executed != "no" || done.Origin != "local" {
		t.Errorf("it ended in %+v", done)
	}
}

// TestObservers_SeeLocalCalls: with the same phases and lengths as calls over a
// connection.
func TestObservers_SeeLocalCalls(t *testing.T) {
	var atServer, atClient recorder
	server := serve(t, fulmar.ServerConfig{Observers: []observe.Observer{atServer.observer()}}, adder())
	client := dialAny(t, fulmar.ClientConfig{Local: server.server, Observers: []observe.Observer{atClient.observer()}})
	api := testservice.NewEchoClient(client)
	for range 2 {
		if sum, err := api.Add(t.Context(), 40, 2); sum != 42 || err != nil {
			t.Fatalf("Add = %d, %v", sum, err)
		}
	}
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Add(t.Context(), 40, 2); err == nil {
		t.Error("a call to a server that has stopped")
	}
	for i := range 2 {
		if got, want := atClient.phases(i), fmt.Sprintf(clientPhases, observe.UseLocal); got != want {
			t.Errorf("client, call %d:\n%s, want\n%s", i, got, want)
		}
		if got := atServer.phases(i); got != serverPhases {
			t.Errorf("server, call %d:\n%s, want\n%s", i, got, serverPhases)
		}
		out, in := atClient.done(t, i), atServer.done(t, i)
		if out.BytesOut == 0 || out.BytesIn == 0 || out.BytesOut != in.BytesIn || out.BytesIn != in.BytesOut {
			t.Errorf("call %d: the client sent %d and received %d bytes, the server received %d and sent %d", i, out.BytesOut, out.BytesIn, in.BytesIn, in.BytesOut)
		}
	}
	if out := atClient.done(t, 2); out.Err == nil || out.Executed != "no" || atClient.calls[2].Peer != "local" {
		t.Errorf("the refused call %+v ended in %+v", atClient.calls[2], out)
	}
	atClient.check(t)
	atServer.check(t)
}
