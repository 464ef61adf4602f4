package fulmar_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// multiplier is a Calculator, whose method has the name of one of Echo.
type multiplier struct{}

func (multiplier) Add(_ context.Context, left, right int32) (int32, error) { return left * right, nil }

// TestServer_RoutesByTheServiceOfTheHeader: two services have the method add.
func TestServer_RoutesByTheServiceOfTheHeader(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { return nil }
	server := serveAny(t, fulmar.ServerConfig{}, func(registrar fulmar.Registrar) {
		testservice.RegisterEchoServer(registrar, stub)
		testservice.RegisterCalculatorServer(registrar, multiplier{})
	})
	const sum, product = 7, 12
	nothing := message(thriftwire.Call, "nothing", 1, []byte{0})
	add := func(name string) []byte {
		return message(thriftwire.Call, name, 1, body(t, &testservice.EchoAddArgs{Left: 3, Right: 4}))
	}
	cases := map[string]struct {
		keys    []ttheader.Pair
		message []byte
		// result is the sum or product, 0 for nothing, -1 for an exception with text.
		result int32
		text   string
	}{
		"the first service":                {pairs("isn", "Echo"), add("add"), sum, ""},
		"the second service":               {pairs("isn", "Calculator"), add("add"), product, ""},
		"the last one counts":              {pairs("isn", "Echo", "isn", "Calculator"), add("add"), product, ""},
		"a name that says more":            {pairs("isn", "Echo"), add("Calculator:add"), product, ""},
		"a service of an older name":       {pairs("isn", "Gone"), nothing, 0, ""},
		"a service of an older name twice": {pairs("isn", "Gone"), add("add"), -1, `method "add" is in several services (Echo, Calculator)`},
		"no service":                       {nil, nothing, 0, ""},
		"no service, twice":                {nil, add("add"), -1, `call it as "Service:add"`},
		"an empty service":                 {pairs("isn", ""), nothing, 0, ""},
		"of another service":               {pairs("isn", "Calculator"), nothing, -1, `unknown method "nothing" of service "Calculator"`},
		"other spelling":                   {pairs("isn", "echo"), add("add"), -1, "in several services"},
		"unknown in a name":                {pairs("isn", "Echo"), add("Gone:add"), -1, `unknown`},
		"the token is no service":          {pairs("ISN", "Calculator"), nothing, 0, ""},
		"a very long service":              {pairs("isn", strings.Repeat("x", 60000)), nothing, 0, ""},
	}
	for name, test := range cases {
		conn := connect(t, server.address)
		write(t, conn, headed(t, ttheader.Head{Sequence: 1, Strings: test.keys}, test.message))
		switch test.result {
		case -1:
			if _, exception := wantHeadedException(t, conn, 1); !strings.Contains(exception.Message, test.text) || exception.Type != thriftwire.ExceptionUnknownMethod && exception.Type != thriftwire.ExceptionUnknownService {
				t.Errorf("%s: exception %d %q, want %q", name, exception.Type, exception.Message, test.text)
			}
		case 0:
			if answer := readHeaded(t, conn); answer.Type != thriftwire.Reply {
				t.Errorf("%s: %v", name, answer.Type)
			}
		default:
			wantHeadedSum(t, conn, 1, test.result)
		}
	}
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		for range 2 { // on a connection of its own, and on a shared one
			if got, err := testservice.NewEchoClient(client).Add(context.Background(), 3, 4); got != sum || err != nil {
				t.Errorf("Echo.add = %d, %v", got, err)
			}
			if got, err := testservice.NewCalculatorClient(client).Add(context.Background(), 3, 4); got != product || err != nil {
				t.Errorf("Calculator.add = %d, %v", got, err)
			}
		}
	})
}

// refusedAndFailed are calls that do not succeed, and whether their handlers ran.
func refusedAndFailed(t *testing.T) map[string]struct {
	message  []byte
	executed string
	code     string
} {
	echo := func(text string) []byte {
		return message(thriftwire.Call, "echo", 5, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{Text: text}}))
	}
	return map[string]struct {
		message  []byte
		executed string
		code     string
	}{
		"unknown method":   {message(thriftwire.Call, "nope", 5, []byte{0}), "no", "12"},
		"unknown service":  {message(thriftwire.Call, "Nope:add", 5, []byte{0}), "no", "12"},
		"a bad name":       {message(thriftwire.Call, "", 5, []byte{0}), "no", "3"},
		"not a call":       {message(thriftwire.Reply, "echo", 5, []byte{0}), "no", "3"},
		"bad arguments":    {message(thriftwire.Call, "echo", 5, []byte{0x0c, 0, 1, 0, 0}), "no", "3"},
		"too long":         {echo(strings.Repeat("x", 2000)), "no", "8"},
		"intercepted":      {echo("intercepted"), "no", "7"},
		"an error":         {echo("error"), "yes", "2"},
		"a code":           {echo("code"), "yes", "5"},
		"not executed":     {echo("not executed"), "yes", "14"},
		"a panic":          {echo("panic"), "yes", "13"},
		"a missing result": {echo("nil"), "yes", "13"},
		"too long a reply": {echo("long"), "yes", "13"},
	}
}

// failing fails in as many ways as there are.
func failing() *testservice.Stub {
	return &testservice.Stub{OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
		switch message.Text {
		case "error":
			return nil, errors.New("plain")
		case "code":
			return nil, fulmar.NewError(fulmar.NotFound, "not there")
		case "not executed":
			// What a call of the handler's own failed with says nothing about this one.
			client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "127.0.0.1:1"})
			if err != nil {
				return nil, err
			}
			defer client.Close()
			return testservice.NewEchoClient(client).Echo(context.Background(), message)
		case "panic":
			panic("oh")
		case "nil":
			return nil, nil
		case "long":
			return &testservice.Message{Text: strings.Repeat("x", 2000)}, nil
		}
		return message, nil
	}}
}

// TestServer_SaysWhetherTheHandlerRan: to every peer that a refused call was not
// executed; that one was, and the code, only to peers of our own kind, on the
// whole connection once they said so.
func TestServer_SaysWhetherTheHandlerRan(t *testing.T) {
	intercept := func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		if request, err := call.Request(); err == nil && request.(*testservice.EchoEchoArgs).Message.Text == "intercepted" {
			return fulmar.NewError(fulmar.PermissionDenied, "no")
		}
		return next(ctx, call)
	}
	server := serve(t, fulmar.ServerConfig{MaxMessageBytes: 1000, Interceptors: []fulmar.UnaryInterceptor{intercept}}, failing())
	for name, test := range refusedAndFailed(t) {
		for peer, test := range map[string]struct {
			first, second  []ttheader.Pair
			executed, code string
		}{
			"ours":                   {nil, pairs("fulmar-caps", "mux"), test.executed, test.code},
			"ours, said before":      {pairs("fulmar-caps", "mux"), nil, test.executed, test.code},
			"one that can do more":   {nil, pairs("fulmar-caps", "zip, mux ,x"), test.executed, test.code},
			"Kitex":                  {nil, nil, strings.TrimPrefix(test.executed, "yes"), ""},
			"one that can do others": {nil, pairs("fulmar-caps", "muxx,zip"), strings.TrimPrefix(test.executed, "yes"), ""},
		} {
			for _, flags := range []uint16{0, wire.FlagOutOfOrder} {
				conn := connect(t, server.address)
				hello := message(thriftwire.Call, "echo", 4, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{}}))
				write(t, conn, headed(t, ttheader.Head{Flags: flags, Sequence: 4, Strings: test.first}, hello))
				if answer := readHeaded(t, conn); answer.Type != thriftwire.Reply || answer.strings["fulmar-executed"] != "" || answer.strings["fulmar-code"] != "" || (answer.strings["fulmar-caps"] == "mux") != (test.first != nil) {
					t.Errorf("%s to %s: the first answer is a %v with %v", name, peer, answer.Type, answer.strings)
				}
				write(t, conn, headed(t, ttheader.Head{Flags: flags, Sequence: 5, Strings: test.second}, refusedAndFailed(t)[name].message))
				answer, exception := wantHeadedException(t, conn, 5)
				if answer.strings["fulmar-executed"] != test.executed || answer.strings["fulmar-code"] != test.code {
					t.Errorf("%s to %s: exception %d %q with %v; want executed %q, code %q", name, peer, exception.Type, exception.Message, answer.strings, test.executed, test.code)
				}
				_ = conn.Close()
			}
		}
	}
}

// TestServer_SaysThatACallTooManyDidNotRun, on connections with one call at a
// time and with many.
func TestServer_SaysThatACallTooManyDidNotRun(t *testing.T) {
	var held holder
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxCalls: 2}, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		release := held.begin()
		conn := s.connect()
		for i := range int32(2) {
			write(t, conn, headed(t, flagged(i), message(thriftwire.Call, "nothing", i, []byte{0})))
			synctest.Wait()
		}
		for _, flags := range []uint16{wire.FlagOutOfOrder, 0} {
			write(t, conn, headed(t, ttheader.Head{Flags: flags, Sequence: 7}, message(thriftwire.Call, "nothing", 7, []byte{0})))
			if answer, exception := wantHeadedException(t, conn, 7); answer.strings["fulmar-executed"] != "no" || !strings.Contains(exception.Message, "2 calls are running (limit 2)") {
				t.Errorf("a call too many: %q with %v", exception.Message, answer.strings)
			}
		}
		if e := asError(t, s.api.Nothing(context.Background())); e.Executed() != fulmar.ExecutedNo || e.Code() != fulmar.ResourceExhausted || e.Origin() != fulmar.OriginRemote {
			t.Errorf("a client's call: %v: code %v, %v", e, e.Code(), e.Executed())
		}
		release()
		for range 2 {
			readHeaded(t, conn)
		}
		_ = conn.Close()
	})
	if n := held.started.Load(); n != 2 {
		t.Errorf("%d calls were executed", n)
	}
}

// TestServer_OnewayIsNeverAnsweredWithAHeaderEither, and holds up nothing on a
// connection whose peer takes answers in any order.
func TestServer_OnewayIsNeverAnsweredWithAHeaderEither(t *testing.T) {
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	stub.OnNotify = func(ctx context.Context, _ string) error { return stub.OnNothing(ctx) }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		release := held.begin()
		conn := s.connect()
		for i, call := range [][]byte{
			message(thriftwire.Oneway, "notify", 1, []byte{0}),
			message(thriftwire.Call, "notify", 2, []byte{0}),
			message(thriftwire.Oneway, "nope", 3, []byte{0}),
			message(thriftwire.Oneway, "notify", 4, []byte{0xff}),
			message(thriftwire.Oneway, "", 5, []byte{0}),
		} {
			write(t, conn, headed(t, flagged(int32(i)), call))
		}
		write(t, conn, headed(t, flagged(6), addCall(t, 6, 1, 2)))
		wantHeadedSum(t, conn, 6, 3)
		release()
		synctest.Wait()
		write(t, conn, headed(t, flagged(7), addCall(t, 7, 1, 2)))
		wantHeadedSum(t, conn, 7, 3)
		_ = conn.Close()
	})
	if n := held.started.Load(); n != 2 {
		t.Errorf("%d oneway calls were executed, want 2", n)
	}
}
