package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// TestBusinessError_ArrivesAsItWasSent, where the protocol has room for it, and
// as an Error with its text elsewhere.
func TestBusinessError_ArrivesAsItWasSent(t *testing.T) {
	cases := map[string]struct {
		sent *fulmar.BusinessError
		text string
	}{
		"everything":      {fulmar.NewBusinessError(1001, "limit reached", map[string]string{"left": "10", "größe": "ä\"\x00"}), "limit reached"},
		"no details":      {fulmar.NewBusinessError(-1, "negative", nil), "negative"},
		"no text":         {fulmar.NewBusinessError(7, "", nil), ""},
		"empty details":   {fulmar.NewBusinessError(7, "x", map[string]string{"": ""}), "x"},
		"largest number":  {fulmar.NewBusinessError(1<<31-1, "x", nil), "x"},
		"smallest number": {fulmar.NewBusinessError(-1<<31, "x", nil), "x"},
		"not UTF-8":       {fulmar.NewBusinessError(7, "a\xffb", nil), "a\uFFFDb"},
		"long details":    {fulmar.NewBusinessError(7, "x", map[string]string{"k": strings.Repeat("x", 60000)}), "x"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
				OnNothing: func(context.Context) error { return test.sent },
				OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
					return nil, fmt.Errorf("wrapped: %w", test.sent)
				},
			})
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
				for range 2 { // on a connection of its own, and on a shared one
					err := api.Nothing(context.Background())
					_, wrapped := api.Echo(context.Background(), &testservice.Message{})
					for _, err := range []error{err, wrapped} {
						if protocol < fulmar.TTHeader {
							e := asError(t, err)
							if want := fmt.Sprintf("business error %d: %s", test.sent.Status(), test.text); e.Code() != fulmar.Internal || e.Origin() != fulmar.OriginRemote || !strings.Contains(e.Message(), want) {
								t.Errorf("%v: code %v; want %q", err, e.Code(), want)
							}
							continue
						}
						var business *fulmar.BusinessError
						if !errors.As(err, &business) || business.Status() != test.sent.Status() || business.Message() != test.text || !maps.Equal(business.Extra(), test.sent.Extra()) {
							t.Errorf("%v (%T); want status %d, %q and %v", err, err, test.sent.Status(), test.text, test.sent.Extra())
						}
					}
				}
			})
		})
	}
}

// TestBusinessError_IsImmutable: neither the map it was made of nor the one it
// returns changes it.
func TestBusinessError_IsImmutable(t *testing.T) {
	extra := map[string]string{"k": "v"}
	e := fulmar.NewBusinessError(7, "x", extra)
	extra["k"] = "changed"
	e.Extra()["k"] = "changed"
	if got := e.Extra()["k"]; got != "v" {
		t.Errorf("Extra has %q", got)
	}
	if got := fulmar.NewBusinessError(7, "x", nil).Extra(); got != nil {
		t.Errorf("Extra = %v, want nil", got)
	}
	if got := e.Error(); got != "business error 7: x" {
		t.Errorf("Error = %q", got)
	}
}

// TestBusinessError_OnwardThroughAServer: a handler may return the one of its
// own call.
func TestBusinessError_OnwardThroughAServer(t *testing.T) {
	last := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error {
		return fulmar.NewBusinessError(7, "x", map[string]string{"k": "v"})
	}})
	toLast := dial(t, fulmar.ClientConfig{Target: last.address})
	front := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error { return toLast.Nothing(ctx) }})
	var business *fulmar.BusinessError
	if err := dial(t, fulmar.ClientConfig{Target: front.address}).Nothing(context.Background()); !errors.As(err, &business) || business.Status() != 7 || business.Extra()["k"] != "v" {
		t.Errorf("%v (%T)", err, err)
	}
}

// TestBusinessError_ThatIsNone: what a handler may return by mistake, or that
// cannot be sent, fails as an Error.
func TestBusinessError_ThatIsNone(t *testing.T) {
	cases := map[string]struct {
		err  error
		code fulmar.Code
		text string
	}{
		"status 0":           {fulmar.NewBusinessError(0, "x", nil), fulmar.Internal, "business error 0: x"},
		"typed nil":          {(*fulmar.BusinessError)(nil), fulmar.Unknown, "nil *fulmar.BusinessError"},
		"wrapped, typed nil": {fmt.Errorf("outer: %w", (*fulmar.BusinessError)(nil)), fulmar.Unknown, "outer: nil *fulmar.BusinessError"},
		"too much":           {fulmar.NewBusinessError(7, "x", map[string]string{"k": strings.Repeat("x", 1<<16)}), fulmar.Internal, "the reply cannot be encoded"},
	}
	for name, test := range cases {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error { return test.err }})
		eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
			api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
			for range 2 { // on a connection of its own, and on a shared one
				e := asError(t, api.Nothing(context.Background()))
				if e.Code() != test.code || e.Executed() != fulmar.ExecutedYes || !strings.Contains(e.Message(), test.text) {
					t.Errorf("%s: %v: code %v, %v; want %v with %q", name, e, e.Code(), e.Executed(), test.code, test.text)
				}
			}
		})
	}
}

// TestException_ThatIsNil: a handler that returns a nil pointer to a declared exception has
// failed, without anything to send.
func TestException_ThatIsNil(t *testing.T) {
	for name, err := range map[string]error{
		"typed nil":          (*testservice.Refused)(nil),
		"wrapped, typed nil": fmt.Errorf("outer: %w", (*testservice.Refused)(nil)),
	} {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
			return nil, err
		}})
		eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
			api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
			_, err := api.Echo(context.Background(), &testservice.Message{})
			e := asError(t, err)
			if e.Code() != fulmar.Unknown || e.Executed() != fulmar.ExecutedYes || strings.Contains(e.Message(), "panic") {
				t.Errorf("%s: %v: code %v, %v", name, e, e.Code(), e.Executed())
			}
			if refused := (*testservice.Refused)(nil); errors.As(err, &refused) {
				t.Errorf("%s: arrived as %v", name, refused)
			}
		})
	}
}

// TestBusinessError_OnTheWire: the keys that Kitex has for it, on a reply without
// a result.
func TestBusinessError_OnTheWire(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
		return nil, fulmar.NewBusinessError(-7, "no", map[string]string{"b": "2", "a": "<1>"})
	}})
	conn := connect(t, server.address)
	write(t, conn, headed(t, flagged(9), message(thriftwire.Call, "echo", 9, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{}}))))
	reply := readHeaded(t, conn)
	want := map[string]string{"biz-status": "-7", "biz-message": "no", "biz-extra": `{"a":"\u003c1\u003e","b":"2"}`}
	if reply.Type != thriftwire.Reply || reply.HeaderSequence != 9 || len(reply.Body) != 1 || !maps.Equal(reply.strings, want) || reply.ints[22] != "2" {
		t.Errorf("%v %d with % x, %v and %v; want %v", reply.Type, reply.HeaderSequence, reply.Body, reply.strings, reply.ints, want)
	}
}

// TestBusinessError_FromAnyPeer: what a client makes of the keys in a reply, also
// if they make no sense, on a connection of its own and on a shared one.
func TestBusinessError_FromAnyPeer(t *testing.T) {
	const none = "none"
	cases := map[string]struct {
		keys []string
		// want is the business error, none for a call that succeeds, or what the
		// text of an Error with code Internal contains.
		want  string
		extra map[string]string
	}{
		"all keys":            {[]string{"biz-status", "7", "biz-message", "m", "biz-extra", `{"k":"v"}`}, "business error 7: m", map[string]string{"k": "v"}},
		"status only":         {[]string{"biz-status", "7"}, "business error 7: ", nil},
		"any order":           {[]string{"biz-extra", `{}`, "biz-message", "m", "biz-status", "-7"}, "business error -7: m", map[string]string{}},
		"the last one counts": {[]string{"biz-status", "7", "biz-status", "8"}, "business error 8: ", nil},
		"null":                {[]string{"biz-status", "7", "biz-extra", "null"}, "business error 7: ", nil},
		"empty details":       {[]string{"biz-status", "7", "biz-extra", ""}, "business error 7: ", nil},
		"status 0":            {[]string{"biz-status", "0", "biz-message", "m", "biz-extra", "{"}, none, nil},
		"no status":           {[]string{"biz-message", "m", "biz-extra", `{"k":"v"}`}, none, nil},
		"a text":              {[]string{"biz-status", "seven"}, none, nil},
		"an empty status":     {[]string{"biz-status", ""}, none, nil},
		"beyond 32 bits":      {[]string{"biz-status", "4294967296"}, none, nil},
		"far beyond":          {[]string{"biz-status", "99999999999999999999999"}, none, nil},
		"a fraction":          {[]string{"biz-status", "1.5"}, none, nil},
		"not JSON":            {[]string{"biz-status", "7", "biz-extra", "{"}, `biz-extra of the reply is not a JSON object of texts: "{"`, nil},
		"not an object":       {[]string{"biz-status", "7", "biz-extra", `["k"]`}, "biz-extra of the reply is not a JSON object of texts", nil},
		"not texts":           {[]string{"biz-status", "7", "biz-extra", `{"k":1}`}, "biz-extra of the reply is not a JSON object of texts", nil},
		"very deep":           {[]string{"biz-status", "7", "biz-extra", strings.Repeat("[", 60000)}, "biz-extra of the reply is not a JSON object of texts", nil},
		"a long text":         {[]string{"biz-status", "7", "biz-message", strings.Repeat("x", 60000)}, "business error 7: xxx", nil},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			answerNothing(t, test.keys, func(err error) {
				var business *fulmar.BusinessError
				switch e := (*fulmar.Error)(nil); {
				case test.want == none:
					if err != nil {
						t.Errorf("%v (%T); want success", err, err)
					}
				case errors.As(err, &business):
					if !strings.HasPrefix(err.Error(), test.want) || !maps.Equal(business.Extra(), test.extra) {
						t.Errorf("%.100v with %v; want %s with %v", err, business.Extra(), test.want, test.extra)
					}
				case !errors.As(err, &e) || e.Code() != fulmar.Internal || e.Executed() == fulmar.ExecutedNo || !strings.Contains(e.Message(), test.want) || len(e.Message()) > 500:
					t.Errorf("%v (%T); want %q", err, err, test.want)
				}
			})
		})
	}
}

// answerNothing makes two calls of a client to a raw peer, which shares
// connections, and answers them with these keys.
func answerNothing(t *testing.T, keys []string, check func(err error)) {
	t.Helper()
	answer := func(conn net.Conn) {
		for {
			call, err := nextHeaded(conn)
			if err != nil {
				return
			}
			if _, err := conn.Write(reply(t, call, []byte{0}, keys...)); err != nil {
				return
			}
		}
	}
	withFake(t, simnet.Config{}, fulmar.ClientConfig{}, answer, func(client *fulmar.Client) {
		api := testservice.NewEchoClient(client)
		for range 2 {
			check(api.Nothing(context.Background()))
		}
	})
}

// TestError_CodeFromAnyPeer: the number of a code that a peer sends counts if
// there is such a code, whatever the word that the handler ran.
func TestError_CodeFromAnyPeer(t *testing.T) {
	for code, want := range map[string]fulmar.Code{
		"5":                     fulmar.NotFound,
		"16":                    fulmar.Unauthenticated,
		"0":                     fulmar.Unimplemented,
		"17":                    fulmar.Unimplemented,
		"4294967295":            fulmar.Unimplemented,
		"99999999999999999999":  fulmar.Unimplemented,
		"-1":                    fulmar.Unimplemented,
		"not found":             fulmar.Unimplemented,
		strings.Repeat("9", 65): fulmar.Unimplemented,
	} {
		for executed, wantExecuted := range map[string]fulmar.Executed{
			"no": fulmar.ExecutedNo, "yes": fulmar.ExecutedYes, "": fulmar.ExecutedMaybe, "NO": fulmar.ExecutedMaybe,
		} {
			exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod, Message: "what?"}
			b := make([]byte, exception.Size())
			exception.Put(b)
			answer := func(conn net.Conn) {
				if call, err := nextHeaded(conn); err == nil {
					head := ttheader.Head{Sequence: call.HeaderSequence, Strings: pairs("fulmar-executed", executed, "fulmar-code", code)}
					write(t, conn, headed(t, head, message(thriftwire.Exception, "nothing", call.Sequence, b)))
				}
			}
			withFake(t, simnet.Config{}, fulmar.ClientConfig{}, answer, func(client *fulmar.Client) {
				e := asError(t, testservice.NewEchoClient(client).Nothing(context.Background()))
				if e.Code() != want || e.Executed() != wantExecuted || e.Origin() != fulmar.OriginRemote || !strings.Contains(e.Error(), "what?") {
					t.Errorf("fulmar-code %q, fulmar-executed %q: %v: code %v, %v", code, executed, e, e.Code(), e.Executed())
				}
			})
		}
	}
	if got := fulmar.Code(1<<32 - 1).String(); got != "code 4294967295" {
		t.Errorf("String = %q", got)
	}
}
