package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// The ways from a client to a server, which must not differ but in addresses.
const (
	wayTCP   = "tcp"
	wayUnix  = "unix"
	wayLocal = "local"
)

// meeting is a client and a server that met in one of these ways.
type meeting struct {
	*running
	t        *testing.T
	way      string
	protocol fulmar.Protocol
	client   *fulmar.Client
	api      testservice.EchoClient
	// note keeps what handlers and interceptors saw, in order.
	mu    sync.Mutex
	more  sync.Cond
	notes []string
	// release lets held handlers go on.
	release chan struct{}
}

func (m *meeting) note(format string, arguments ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, fmt.Sprintf(format, arguments...))
	m.more.Broadcast()
}

// scene is what is done in each way, and what comes of it.
type scene struct {
	server fulmar.ServerConfig
	client fulmar.ClientConfig
	// prepare changes the two before they are used.
	prepare func(m *meeting, server *fulmar.ServerConfig, client *fulmar.ClientConfig)
	stub    func(m *meeting) *testservice.Stub
	// act makes calls and returns what it saw of them.
	act  func(m *meeting) string
	want string
}

// play runs a scene in one way.
func (s *scene) play(t *testing.T, way string, protocol fulmar.Protocol) string {
	m := &meeting{t: t, way: way, protocol: protocol, release: make(chan struct{})}
	m.more.L = &m.mu
	server, client := s.server, s.client
	client.Protocol = protocol
	if s.prepare != nil {
		s.prepare(m, &server, &client)
	}
	switch way {
	case wayUnix:
		server.Address = "unix://" + filepath.Join(t.TempDir(), "s")
		client.Target = server.Address
	case wayLocal:
		server.LocalOnly = true
	}
	stub := adder()
	if s.stub != nil {
		stub = s.stub(m)
	}
	m.running = serveWay(t, server, stub)
	switch way {
	case wayTCP:
		client.Target = m.address
	case wayLocal:
		client.Local = m.server
	}
	m.client = dialAny(t, client)
	m.api = testservice.NewEchoClient(m.client)
	result := s.act(m)
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(append(m.notes, result), "\n")
}

// serveWay is serve for a server that may have no address.
func serveWay(t *testing.T, config fulmar.ServerConfig, stub *testservice.Stub) *running {
	if !config.LocalOnly {
		return serve(t, config, stub)
	}
	r := &running{log: &logRecorder{}, address: "local"}
	config.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, stub)
	if _, err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	r.server = server
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-served
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// outcome describes what a call ended in, without addresses and times.
func outcome(err error) string {
	var business *fulmar.BusinessError
	var refused *testservice.Refused
	var e *fulmar.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &business):
		return fmt.Sprintf("business %d %q %v", business.Status(), business.Message(), business.Extra())
	case errors.As(err, &refused):
		return fmt.Sprintf("refused %q %d", refused.Reason, refused.Limit)
	case errors.As(err, &e):
		return fmt.Sprintf("%v, %v, %v, %v: %s", e.Code(), e.Origin(), e.Executed(), e.Phase(), moreThan.ReplaceAllString(e.Message(), "message of too many bytes"))
	default:
		return fmt.Sprintf("%T %v", err, err)
	}
}

// TestLocal_IsAsOnTheNetwork plays each scene over TCP, over a unix socket and
// without any, with each protocol. All three must come to the same, and with TTHeader to
// what the scene wants.
func TestLocal_IsAsOnTheNetwork(t *testing.T) {
	t.Parallel()
	scenes := map[string]*scene{}
	for _, some := range []map[string]*scene{resultScenes(), failureScenes(), limitScenes(), timeScenes(), stopScenes()} {
		maps.Copy(scenes, some)
	}
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // those that wait for a deadline do nothing else
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				scene := scenes[name]
				local := scene.play(t, wayLocal, protocol)
				if protocol == fulmar.TTHeader && local != scene.want {
					t.Errorf("local:\n%s\nwant:\n%s", local, scene.want)
				}
				for _, way := range []string{wayTCP, wayUnix} {
					if network := scene.play(t, way, protocol); network != local {
						t.Errorf("%s:\n%s\nlocal:\n%s", way, network, local)
					}
				}
			})
		})
	}
}

// failsWith is a stub whose method "nothing" returns err.
func failsWith(err error) func(*meeting) *testservice.Stub {
	return func(*meeting) *testservice.Stub {
		return &testservice.Stub{OnNothing: func(context.Context) error { return err }}
	}
}

// doNothing is what most scenes do.
func doNothing(m *meeting) string { return outcome(m.api.Nothing(m.t.Context())) }

func resultScenes() map[string]*scene {
	return map[string]*scene{
		"result": {
			act: func(m *meeting) string {
				sum, err := m.api.Add(m.t.Context(), 1, 2)
				return fmt.Sprint(sum, " ", outcome(err))
			},
			want: "3 ok",
		},
		"long": {
			act: func(m *meeting) string {
				parts := &testservice.Message{Text: strings.Repeat("long", limits.LinkedStringBytes)}
				for range 100 {
					parts.Parts = append(parts.Parts, testservice.Message{Text: strings.Repeat("x", 1000)})
				}
				back, err := m.api.Echo(m.t.Context(), parts)
				return fmt.Sprint(back.Equal(parts), " ", outcome(err))
			},
			want: "true ok",
		},
		"oneway": {
			stub: func(m *meeting) *testservice.Stub {
				return &testservice.Stub{
					OnNotify:  func(_ context.Context, text string) error { m.note("told %s", text); return errors.New("unheard") },
					OnVersion: func(context.Context) (string, error) { return "1", nil },
				}
			},
			act: func(m *meeting) string {
				err := m.api.Notify(m.t.Context(), "it")
				m.await(1)
				return outcome(err)
			},
			want: "told it\nok",
		},
		"metadata": {client: fulmar.ClientConfig{Caller: "me"}, stub: metadataStub, act: callWithMetadata,
			want: "P=1 T=2 caller=me/ protocol=ttheader onward=[P=1]\nmap[COST:3] ok"},
		"interceptors": {prepare: noteInterceptors, stub: noteHandler, act: doNothing,
			want: "client before Echo.nothing\nserver before Echo.nothing\nhandler\nserver after ok\nclient after ok\nok"},
		"qualified": {client: fulmar.ClientConfig{QualifiedNames: true}, act: func(m *meeting) string {
			sum, err := m.api.Add(m.t.Context(), 1, 2)
			return fmt.Sprint(sum, " ", outcome(err))
		}, want: "3 ok"},
		"raw":    {act: callRaw, want: "true ok"},
		"scoped": {stub: scopedStub, act: callScoped, want: "handler hello\nhello ok"},
		"unknown handler": {
			server: fulmar.ServerConfig{UnknownHandler: func(ctx context.Context, request fulmar.Raw) (fulmar.Raw, error) {
				call, _ := fulmar.CallFrom(ctx)
				return textStruct(len(call.Method()) + len(request)), nil
			}},
			act: func(m *meeting) string {
				request, reply := textStruct(5), fulmar.Raw(nil)
				err := m.client.Call(m.t.Context(), rawMethod(m.t, "Elsewhere", "get"), &request, &reply)
				return fmt.Sprint(len(reply), " ", outcome(err))
			},
			want: fmt.Sprint(len(textStruct(3+len(textStruct(5)))), " ok"),
		},
		"forward": {prepare: forwardToLocal, act: func(m *meeting) string {
			request, reply := fulmar.Raw{0}, fulmar.Raw(nil)
			first := outcome(m.client.Call(m.t.Context(), rawMethod(m.t, "Calculator", "fails"), &request, &reply))
			err := m.client.Call(m.t.Context(), rawMethod(m.t, "Calculator", "add"), &request, &reply)
			return fmt.Sprintf("%s\n% x %s", first, []byte(reply), outcome(err))
		}, want: "unimplemented, remote, not executed, reading the reply: unknown method \"fails\" of service \"Calculator\"\n08 00 00 00 00 00 2a 00 ok"},
	}
}

// forwardToLocal makes the server a proxy of another one, which is local.
func forwardToLocal(m *meeting, server *fulmar.ServerConfig, _ *fulmar.ClientConfig) {
	behind, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		m.t.Fatal(err)
	}
	testservice.RegisterCalculatorServer(behind, answer{})
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := behind.Listen(); err != nil {
		m.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- behind.Serve(ctx) }()
	m.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			m.t.Error(err)
		}
	})
	server.UnknownHandler = fulmar.Forward(dialAny(m.t, fulmar.ClientConfig{Local: behind}))
}

// answer is a calculator with one result.
type answer struct{}

func (answer) Add(context.Context, int32, int32) (int32, error) { return 42, nil }

// await waits until so many notes are there.
func (m *meeting) await(notes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.notes) < notes {
		m.more.Wait()
	}
}

func metadataStub(m *meeting) *testservice.Stub {
	return &testservice.Stub{OnNothing: func(ctx context.Context) error {
		call, _ := fulmar.CallFrom(ctx)
		persistent, _ := call.Metadata().Persistent("P")
		transient, _ := call.Metadata().Transient("T")
		var onward []string
		for key, value := range fulmar.OutgoingMetadata(ctx).AllPersistent() {
			onward = append(onward, key+"="+value)
		}
		m.note("P=%s T=%s caller=%s/%s protocol=%v onward=%v", persistent, transient, call.CallerService(), call.CallerMethod(), call.Protocol(), onward)
		return fulmar.SetReplyMetadata(ctx, "COST", "3")
	}}
}

func callWithMetadata(m *meeting) string {
	var back map[string]string
	ctx := fulmar.WithTransient(fulmar.WithPersistent(m.t.Context(), "P", "1"), "T", "2")
	err := m.api.Nothing(ctx, fulmar.ReceiveMetadata(&back))
	return fmt.Sprint(back, " ", outcome(err))
}

func noteInterceptors(m *meeting, server *fulmar.ServerConfig, client *fulmar.ClientConfig) {
	client.Interceptors = []fulmar.UnaryInterceptor{m.noted}
	server.Interceptors = []fulmar.UnaryInterceptor{m.noted}
}

func (m *meeting) noted(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	m.note("%v before %s.%s", call.Side(), call.Service(), call.Method())
	err := next(ctx, call)
	m.note("%v after %s", call.Side(), outcome(err))
	return err
}

func noteHandler(m *meeting) *testservice.Stub {
	return &testservice.Stub{OnNothing: func(context.Context) error { m.note("handler"); return nil }}
}

func callRaw(m *meeting) string {
	request := slices.Concat(fulmar.Raw{12, 0, 1}, textStruct(100_000), fulmar.Raw{0})
	var reply fulmar.Raw
	err := m.client.Call(m.t.Context(), rawMethod(m.t, "Echo", "echo"), &request, &reply)
	kept := bytes.Clone(reply)
	for range 10 {
		// What a reply lies in must not be used for another one.
		var other fulmar.Raw
		if err := m.client.Call(m.t.Context(), rawMethod(m.t, "Echo", "echo"), &request, &other); err != nil {
			m.t.Error(err)
		}
		clear(other)
	}
	if !bytes.Equal(kept, reply) {
		m.t.Error("a reply has changed")
	}
	return fmt.Sprint(bytes.Contains(reply, request[3:100_000]), " ", outcome(err))
}

func scopedStub(m *meeting) *testservice.Stub {
	return &testservice.Stub{OnScoped: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
		m.note("handler %s", message.Text)
		return message, nil
	}}
}

func callScoped(m *meeting) string {
	back, err := m.api.Scoped(m.t.Context(), &testservice.Message{Text: "hello"})
	return back.Text + " " + outcome(err)
}

func failureScenes() map[string]*scene {
	return map[string]*scene{
		"error":          {stub: failsWith(fulmar.NewError(fulmar.NotFound, "gone")), act: doNothing, want: "not found, remote, executed, reading the reply: gone"},
		"plain error":    {stub: failsWith(errors.New("oh")), act: doNothing, want: "unknown, remote, executed, reading the reply: oh"},
		"business error": {stub: failsWith(fulmar.NewBusinessError(7, "closed", map[string]string{"till": "8"})), act: doNothing, want: "business 7 \"closed\" map[till:8]"},
		"declared exception": {
			stub: func(*meeting) *testservice.Stub {
				return &testservice.Stub{OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
					return nil, &testservice.Refused{Reason: "no", Limit: 3}
				}}
			},
			act:  doEcho,
			want: "refused \"no\" 3",
		},
		"missing result": {
			stub: func(*meeting) *testservice.Stub {
				return &testservice.Stub{OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) { return nil, nil }}
			},
			act:  doEcho,
			want: "internal, remote, executed, reading the reply: neither a result nor an error",
		},
		"panic": {
			stub: func(*meeting) *testservice.Stub {
				return &testservice.Stub{OnNothing: func(context.Context) error { panic("on purpose") }}
			},
			act:  doNothing,
			want: "internal, remote, executed, reading the reply: panic in the handler",
		},
		"ended goroutine": {
			stub: func(*meeting) *testservice.Stub {
				return &testservice.Stub{OnNothing: func(context.Context) error { runtime.Goexit(); return nil }}
			},
			act:  func(m *meeting) string { return doNothing(m) + "\n" + doNothing(m) },
			want: "internal, remote, executed, reading the reply: panic in the handler\ninternal, remote, executed, reading the reply: panic in the handler",
		},
		"unknown method": {
			act: func(m *meeting) string {
				request, reply := fulmar.Raw{0}, fulmar.Raw(nil)
				return outcome(m.client.Call(m.t.Context(), rawMethod(m.t, "Echo", "none"), &request, &reply))
			},
			want: "unimplemented, remote, not executed, reading the reply: unknown method \"none\" of service \"Echo\"",
		},
		"bad arguments": {
			act: func(m *meeting) string {
				request, reply := fulmar.Raw{8, 0, 1, 0}, fulmar.Raw(nil)
				return outcome(m.client.Call(m.t.Context(), rawMethod(m.t, "Echo", "add"), &request, &reply))
			},
			want: "invalid argument, remote, not executed, reading the reply: request refused: thrift: Echo.add arguments: field 1: i32 needs 4 bytes, 1 are left (at byte 3)",
		},
		"interceptor refuses": {
			server: fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{
				func(context.Context, fulmar.Unary, fulmar.UnaryNext) error {
					return fulmar.NewError(fulmar.PermissionDenied, "not you")
				},
			}},
			act:  doNothing,
			want: "permission denied, remote, not executed, reading the reply: not you",
		},
	}
}

func doEcho(m *meeting) string {
	_, err := m.api.Echo(m.t.Context(), &testservice.Message{Text: "x"})
	return outcome(err)
}

func limitScenes() map[string]*scene {
	long := func(m *meeting) string {
		_, err := m.api.Echo(m.t.Context(), &testservice.Message{Text: strings.Repeat("x", 3000)})
		return outcome(err)
	}
	return map[string]*scene{
		"request too long here": {client: fulmar.ClientConfig{MaxMessageBytes: 1000}, act: long,
			want: "resource exhausted, local, not executed, encoding the request: thrift: message of too many bytes (limit 1000)"},
		"request too long there": {server: fulmar.ServerConfig{MaxMessageBytes: 1000}, act: long,
			want: "resource exhausted, remote, not executed, reading the reply: request refused: thrift: message of 3045 bytes (limit 1000)"},
		"reply too long here": {
			client: fulmar.ClientConfig{MaxMessageBytes: 1000},
			stub: func(*meeting) *testservice.Stub {
				return &testservice.Stub{OnVersion: func(context.Context) (string, error) { return strings.Repeat("x", 3000), nil }}
			},
			act:  func(m *meeting) string { _, err := m.api.Version(m.t.Context()); return outcome(err) },
			want: "resource exhausted, transport, maybe executed, reading the reply: thrift: message of 3027 bytes (limit 1000)",
		},
		"reply too long there": {
			server: fulmar.ServerConfig{MaxMessageBytes: 1000},
			stub: func(*meeting) *testservice.Stub {
				return &testservice.Stub{OnVersion: func(context.Context) (string, error) { return strings.Repeat("x", 3000), nil }}
			},
			act:  func(m *meeting) string { _, err := m.api.Version(m.t.Context()); return outcome(err) },
			want: "internal, remote, executed, reading the reply: the reply cannot be encoded: thrift: message of too many bytes (limit 1000)",
		},
		"nested too deep": {
			server: fulmar.ServerConfig{MaxDepth: 2},
			act: func(m *meeting) string {
				_, err := m.api.Echo(m.t.Context(), &testservice.Message{Parts: []testservice.Message{{Parts: []testservice.Message{{}}}}})
				return outcome(err)
			},
			want: "resource exhausted, remote, not executed, reading the reply: request refused: thrift: Echo.echo arguments: field 1: testservice.Message: structs and containers nest deeper than 2 (at byte 13)",
		},
		"too many calls": {server: fulmar.ServerConfig{MaxCalls: 1}, stub: heldStub, act: func(m *meeting) string {
			return m.whileHeld(func() string { _, err := m.api.Add(m.t.Context(), 1, 2); return outcome(err) })
		}, want: "held\nresource exhausted, remote, not executed, reading the reply: 1 calls are running (limit 1)\nok"},
		"overloaded": {server: fulmar.ServerConfig{MaxBufferedBytes: 1000}, act: long,
			want: "resource exhausted, remote, not executed, reading the reply: request refused: overloaded: 0 bytes of messages are held already (limit 1000)"},
		"metadata too long": {act: func(m *meeting) string {
			ctx := fulmar.WithPersistent(m.t.Context(), "P", strings.Repeat("x", limits.HeaderInfoBytes))
			return outcome(m.api.Nothing(ctx))
		}, stub: failsWith(nil), want: "resource exhausted, local, not executed, encoding the request: thrift: TTHeader value of 65536 bytes for key \"RPC_PERSIST_P\" (limit 65535)"},
		"metadata that would be dropped": {act: func(m *meeting) string {
			return outcome(m.api.Nothing(fulmar.WithTransient(m.t.Context(), "UPSTREAM_X", "1")))
		}, stub: failsWith(nil), want: "invalid argument, local, not executed, encoding the request: metadata: transient key begins with \"UPSTREAM_\", so peers would drop its pair as one that has made its hop (key \"UPSTREAM_X\")"},
		"protocol not allowed": {prepare: func(_ *meeting, server *fulmar.ServerConfig, client *fulmar.ClientConfig) {
			server.Protocols = []fulmar.Protocol{fulmar.Framed}
			if client.Protocol == fulmar.Framed {
				server.Protocols[0] = fulmar.Bare
			}
		}, act: doNothing, want: "unavailable, transport, maybe executed, waiting for the reply: the server closed the connection: unexpected EOF"},
	}
}

// heldStub has a method "nothing" that runs until whileHeld has looked around.
func heldStub(m *meeting) *testservice.Stub {
	stub := adder()
	stub.OnNothing = func(context.Context) error {
		m.note("held")
		<-m.release
		return nil
	}
	return stub
}

// whileHeld looks around while a call runs.
func (m *meeting) whileHeld(look func() string) string {
	held := make(chan error, 1)
	go func() { held <- m.api.Nothing(m.t.Context(), fulmar.Timeout(-1)) }()
	m.await(1)
	seen := look()
	close(m.release)
	return seen + "\n" + outcome(<-held)
}
