package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// described returns all pairs of metadata as one text.
func described(m fulmar.Metadata) string {
	var list []string
	for key, value := range m.AllPersistent() {
		list = append(list, "persistent "+key+"="+value)
	}
	for key, value := range m.AllTransient() {
		list = append(list, "transient "+key+"="+value)
	}
	return strings.Join(list, ", ")
}

// seen is the metadata of the call that ctx belongs to.
func seen(ctx context.Context) string {
	call, _ := fulmar.CallFrom(ctx)
	return described(call.Metadata())
}

// TestMetadata_AlongAChain: persistent pairs reach every server, transient ones
// the next only, and a server may add and remove what it likes for those behind
// it.
func TestMetadata_AlongAChain(t *testing.T) {
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		var first, second, third string
		last := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			third = seen(ctx)
			return nil
		}})
		toLast := dial(t, fulmar.ClientConfig{Target: last.address, Protocol: protocol})
		middle := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			second = seen(ctx)
			return toLast.Nothing(fulmar.WithPersistent(ctx, "gone", ""))
		}})
		toMiddle := dial(t, fulmar.ClientConfig{Target: middle.address, Protocol: protocol})
		front := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			first = seen(ctx)
			return toMiddle.Nothing(fulmar.WithTransient(fulmar.WithPersistent(ctx, "added", "2"), "hop", "second"))
		}})
		api := dial(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol})

		for range 2 { // on a connection of its own, and on a shared one
			ctx := fulmar.WithPersistent(context.Background(), "Trace", "1")
			ctx = fulmar.WithPersistent(ctx, "gone", "x")
			ctx = fulmar.WithTransient(ctx, "Trace", "t")
			ctx = fulmar.WithTransient(ctx, "hop", "first")
			if err := api.Nothing(ctx); err != nil {
				t.Fatal(err)
			}
			for _, hop := range []struct{ got, want string }{
				{first, "persistent Trace=1, persistent gone=x, transient Trace=t, transient hop=first"},
				{second, "persistent Trace=1, persistent gone=x, persistent added=2, transient hop=second"},
				{third, "persistent Trace=1, persistent added=2"},
			} {
				if hop.got != hop.want {
					t.Errorf("a server sees %q, want %q", hop.got, hop.want)
				}
			}
			first, second, third = "", "", ""
		}
	})
}

// TestMetadata_ProtocolsWithoutHeadersCarryNone, in either direction.
func TestMetadata_ProtocolsWithoutHeadersCarryNone(t *testing.T) {
	for _, protocol := range []fulmar.Protocol{fulmar.Bare, fulmar.Framed} {
		var arrived string
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			arrived = seen(ctx) + described(fulmar.OutgoingMetadata(ctx))
			return fulmar.SetReplyMetadata(ctx, "k", "v")
		}})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		ctx := fulmar.WithTransient(fulmar.WithPersistent(context.Background(), "p", "1"), "t", "2")
		back := map[string]string{"left": "over"}
		if err := api.Nothing(ctx, fulmar.ReceiveMetadata(&back)); err != nil || arrived != "" || back != nil {
			t.Errorf("%v: %v, the server sees %q, the client gets %v", protocol, err, arrived, back)
		}
	}
}

// TestMetadata_OfTheContext: contexts are independent of those derived from
// them, and what is no pair is left out.
func TestMetadata_OfTheContext(t *testing.T) {
	none := context.Background()
	one := fulmar.WithPersistent(none, "a", "1")
	other := fulmar.WithPersistent(one, "b", "2")
	changed := fulmar.WithPersistent(other, "a", "3")
	removed := fulmar.WithPersistent(changed, "a", "")
	for _, test := range []struct {
		ctx  context.Context
		want string
	}{
		{none, ""},
		{one, "persistent a=1"},
		{other, "persistent a=1, persistent b=2"},
		{changed, "persistent b=2, persistent a=3"},
		{removed, "persistent b=2"},
		{fulmar.WithTransient(removed, "b", ""), "persistent b=2"},
		{fulmar.WithTransient(one, "", "x"), "persistent a=1"},
		{fulmar.WithPersistent(none, "", ""), ""},
	} {
		if got := described(fulmar.OutgoingMetadata(test.ctx)); got != test.want {
			t.Errorf("calls carry %q, want %q", got, test.want)
		}
	}
	m := fulmar.OutgoingMetadata(other)
	if value, ok := m.Persistent("a"); value != "1" || !ok {
		t.Errorf("Persistent(a) = %q, %v", value, ok)
	}
	if value, ok := m.Transient("a"); ok {
		t.Errorf("Transient(a) = %q", value)
	}
	for range m.AllPersistent() {
		break // must not go on
	}
}

// TestMetadata_FromAnyPeer: what a server makes of the keys on the wire, and
// what calls of its handler carry on.
func TestMetadata_FromAnyPeer(t *testing.T) {
	type sight struct{ arrived, onward string }
	sights := make(chan sight, 1)
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		sights <- sight{seen(ctx), described(fulmar.OutgoingMetadata(ctx))}
		return nil
	}})
	const token = "transient gdpr-token=secret"
	for name, test := range map[string]struct {
		head                 ttheader.Head
		wantArrived, wantOut string
	}{
		"both kinds":           {ttheader.Head{Strings: pairs("RPC_PERSIST_p", "1", "RPC_TRANSIT_t", "2")}, "persistent p=1, transient t=2", "persistent p=1"},
		"made its hop already": {ttheader.Head{Strings: pairs("RPC_TRANSIT_UPSTREAM_t", "1", "RPC_TRANSIT_UPSTREAM_", "2")}, "", ""},
		"nearly made its hop":  {ttheader.Head{Strings: pairs("RPC_TRANSIT_UPSTREAM", "1")}, "transient UPSTREAM=1", ""},
		"no key or no value":   {ttheader.Head{Strings: pairs("RPC_PERSIST_", "1", "RPC_TRANSIT_", "1", "RPC_PERSIST_p", "", "RPC_TRANSIT_t", "")}, "", ""},
		"the last one counts":  {ttheader.Head{Strings: pairs("RPC_PERSIST_p", "1", "RPC_TRANSIT_p", "2", "RPC_PERSIST_p", "3")}, "persistent p=3, transient p=2", "persistent p=3"},
		"other spelling":       {ttheader.Head{Strings: pairs("rpc_persist_p", "1", "RPC_PERSISTp", "2", "isn", "3")}, "", ""},
		"a token":              {ttheader.Head{Token: "secret"}, token, ""},
		"a token as a pair":    {ttheader.Head{Strings: pairs(wire.TokenKey, "secret")}, token, ""},
		"not UTF-8":            {ttheader.Head{Strings: pairs("RPC_PERSIST_\xff", "\x00\xfe")}, "persistent \xff=\x00\xfe", "persistent \xff=\x00\xfe"},
	} {
		conn := connect(t, server.address)
		write(t, conn, headed(t, test.head, message(thriftwire.Call, "nothing", 1, []byte{0})))
		if reply := readHeaded(t, conn); reply.Type != thriftwire.Reply {
			t.Fatalf("%s: %v", name, reply.Type)
		}
		if got := <-sights; got.arrived != test.wantArrived || got.onward != test.wantOut {
			t.Errorf("%s: it sees %q, want %q, and carries on %q, want %q", name, got.arrived, test.wantArrived, got.onward, test.wantOut)
		}
	}
}

// TestMetadata_OfReplies: it arrives whatever the call ended in, the last value
// of a key counts, and nothing is left of an earlier call.
func TestMetadata_OfReplies(t *testing.T) {
	outcomes := map[string]error{
		"success":            nil,
		"an error":           fulmar.NewError(fulmar.NotFound, "no"),
		"a declared error":   &testservice.Refused{Reason: "no"},
		"a business error":   fulmar.NewBusinessError(7, "no", nil),
		"a missing result":   errors.ErrUnsupported,
		"a panic":            context.Canceled,
		"an error elsewhere": context.DeadlineExceeded,
	}
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnNothing: func(context.Context) error { return nil },
			OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
				for _, pair := range [][2]string{{"k", "old"}, {"gone", "x"}, {"k", "new"}, {"gone", ""}, {"Größe", "ä"}} {
					if err := fulmar.SetReplyMetadata(ctx, pair[0], pair[1]); err != nil {
						return nil, err
					}
				}
				switch err := outcomes[message.Text]; err {
				case nil:
					return message, nil
				case errors.ErrUnsupported:
					return nil, nil
				case context.Canceled:
					panic("oh")
				default:
					return nil, err
				}
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		for range 2 { // on a connection of its own, and on a shared one
			for name, want := range outcomes {
				var back map[string]string
				_, err := api.Echo(context.Background(), &testservice.Message{Text: name}, fulmar.ReceiveMetadata(&back))
				if (err == nil) != (want == nil) || !maps.Equal(back, map[string]string{"k": "new", "Größe": "ä"}) {
					t.Errorf("%s: %v with %v", name, err, back)
				}
				if err := api.Nothing(context.Background(), fulmar.ReceiveMetadata(&back)); err != nil || back != nil {
					t.Errorf("a call without reply metadata after it: %v, %v", back, err)
				}
			}
		}
	})
}

// TestMetadata_OfACallWithoutAReply: what the last call left is not taken for
// this one's.
func TestMetadata_OfACallWithoutAReply(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(ctx context.Context) error { return fulmar.SetReplyMetadata(ctx, "k", "v") },
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range map[string]func(fulmar.CallOption) error{
		"given up before": func(receive fulmar.CallOption) error { return api.Nothing(ended, receive) },
		"too large":       func(receive fulmar.CallOption) error { return api.Nothing(tooMuchMetadata(), receive) },
	} {
		var back map[string]string
		if err := api.Nothing(context.Background(), fulmar.ReceiveMetadata(&back)); err != nil || back["k"] != "v" {
			t.Fatalf("got %v, %v", back, err)
		}
		if err := call(fulmar.ReceiveMetadata(&back)); err == nil || back != nil {
			t.Errorf("%s: %v with %v", name, err, back)
		}
	}
}

// tooMuchMetadata returns a context with more than a header holds.
func tooMuchMetadata() context.Context {
	return fulmar.WithPersistent(context.Background(), "k", strings.Repeat("x", limits.HeaderInfoBytes))
}

// TestMetadata_RefusesKeysOfTheProtocol, and what else cannot be sent.
func TestMetadata_RefusesKeysOfTheProtocol(t *testing.T) {
	refused := map[string]string{
		"":                         "is empty",
		wire.CloseConnection:       "the protocol uses this key itself",
		wire.IDLServiceName:        "the protocol uses this key itself",
		wire.RealAddress:           "the protocol uses this key itself",
		wire.Checksum:              "the protocol uses this key itself",
		wire.BusinessStatus:        "the protocol uses this key itself",
		wire.BusinessExtra:         "the protocol uses this key itself",
		wire.Capabilities:          "the protocol uses this key itself",
		wire.Executed:              "the protocol uses this key itself",
		wire.Code:                  "the protocol uses this key itself",
		wire.PersistentPrefix:      "the protocol uses this key itself",
		wire.TransientPrefix + "x": "the protocol uses this key itself",
	}
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		for key, want := range refused {
			if err := fulmar.SetReplyMetadata(ctx, key, "1"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", key, err, want)
			}
		}
		return nil
	}})
	var back map[string]string
	if err := dial(t, fulmar.ClientConfig{Target: server.address}).Nothing(context.Background(), fulmar.ReceiveMetadata(&back)); err != nil || back != nil {
		t.Errorf("the reply has %v, %v", back, err)
	}
	if err := fulmar.SetReplyMetadata(context.Background(), "k", "v"); err == nil || !strings.Contains(err.Error(), "not in a handler") {
		t.Errorf("outside of a handler: %v", err)
	}
}

// TestMetadata_AfterTheReplyIsTooLate: it is an error instead of a surprise.
func TestMetadata_AfterTheReplyIsTooLate(t *testing.T) {
	contexts := make(chan context.Context, 1)
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error { contexts <- ctx; return nil }})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	var back map[string]string
	if err := api.Nothing(context.Background(), fulmar.ReceiveMetadata(&back)); err != nil {
		t.Fatal(err)
	}
	if err := fulmar.SetReplyMetadata(<-contexts, "k", "v"); err == nil || !strings.Contains(err.Error(), "the reply has gone already") {
		t.Errorf("after the reply: %v", err)
	}
	if back != nil {
		t.Errorf("the reply has %v", back)
	}
}

// TestMetadata_ManyHandlersGoroutinesAtOnce set what a reply carries.
func TestMetadata_ManyHandlersGoroutinesAtOnce(t *testing.T) {
	const goroutines, keys = 8, 20
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for k := range keys {
					if err := fulmar.SetReplyMetadata(ctx, fmt.Sprintf("%d-%d", g, k), "v"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return nil
	}})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	var back map[string]string
	if err := api.Nothing(context.Background(), fulmar.ReceiveMetadata(&back)); err != nil || len(back) != goroutines*keys {
		t.Errorf("%d pairs arrived, %v; want %d", len(back), err, goroutines*keys)
	}
}

// TestMetadata_TooMuchFailsBeforeItIsSent: with what is too long and where the
// limit is, and without a connection.
func TestMetadata_TooMuchFailsBeforeItIsSent(t *testing.T) {
	many := func(ctx context.Context, count int) context.Context {
		for i := range count {
			ctx = fulmar.WithPersistent(ctx, fmt.Sprint(i), "v")
		}
		return ctx
	}
	background := context.Background()
	cases := map[string]struct {
		ctx  context.Context
		want string
	}{
		"pairs": {many(background, limits.HeaderPairs), fmt.Sprintf("key-value pairs (limit %d)", limits.HeaderPairs)},
		"bytes": {fulmar.WithTransient(fulmar.WithPersistent(background, "a", strings.Repeat("x", 40000)), "b", strings.Repeat("x", 40000)), "header info of 80"},
		"key":   {fulmar.WithPersistent(background, strings.Repeat("k", 0x10000), "v"), "(limit 65535)"},
		"value": {fulmar.WithPersistent(background, "k", strings.Repeat("v", 0x10000)), `for key "RPC_PERSIST_k" (limit 65535)`},
	}
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		for name, test := range cases {
			client := dialAny(t, fulmar.ClientConfig{Target: "127.0.0.1:1", Protocol: protocol})
			e := asError(t, testservice.NewEchoClient(client).Nothing(test.ctx))
			if e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseEncode || !strings.Contains(e.Message(), test.want) {
				t.Errorf("%s: %v: code %v, %v; want %q", name, e, e.Code(), e.Executed(), test.want)
			}
		}
	})
	// Without headers there is nothing to be too large.
	server := serve(t, fulmar.ServerConfig{}, adder())
	if _, err := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.Framed}).Add(cases["pairs"].ctx, 1, 2); err != nil {
		t.Errorf("framed: %v", err)
	}
}

// TestMetadata_KeysThatLookLikeThoseOfOldPairs: a transient key that begins with
// UPSTREAM_ means something else on the wire, where its pair would be lost, so
// the call says so instead. All other keys arrive.
func TestMetadata_KeysThatLookLikeThoseOfOldPairs(t *testing.T) {
	none := context.Background()
	cases := map[string]struct {
		ctx context.Context
		// want is what arrives, refused the key that the error names.
		want, refused string
	}{
		"transient":            {fulmar.WithTransient(none, "UPSTREAM_t", "1"), "", `(key "UPSTREAM_t")`},
		"nothing behind it":    {fulmar.WithTransient(none, "UPSTREAM_", "1"), "", `(key "UPSTREAM_")`},
		"among others":         {fulmar.WithTransient(fulmar.WithTransient(none, "UPSTREAM_t", "1"), "t", "2"), "", `(key "UPSTREAM_t")`},
		"a long one":           {fulmar.WithTransient(none, "UPSTREAM_"+strings.Repeat("x", 1000), "1"), "", `(key "UPSTREAM_` + strings.Repeat("x", 91) + `")`},
		"removed again":        {fulmar.WithTransient(fulmar.WithTransient(none, "UPSTREAM_t", "1"), "UPSTREAM_t", ""), "", ""},
		"persistent":           {fulmar.WithPersistent(none, "UPSTREAM_p", "1"), "persistent UPSTREAM_p=1", ""},
		"without its last":     {fulmar.WithTransient(none, "UPSTREAM", "1"), "transient UPSTREAM=1", ""},
		"other spelling":       {fulmar.WithTransient(none, "Upstream_t", "1"), "transient Upstream_t=1", ""},
		"not at the beginning": {fulmar.WithTransient(none, "X_UPSTREAM_t", "1"), "transient X_UPSTREAM_t=1", ""},
	}
	var arrived string
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		arrived = seen(ctx)
		return nil
	}})
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		for name, test := range cases {
			arrived = "no call"
			err := api.Nothing(test.ctx)
			if test.refused == "" {
				if err != nil || arrived != test.want {
					t.Errorf("%s: %v, the server sees %q, want %q", name, err, arrived, test.want)
				}
				continue
			}
			e := asError(t, err)
			if e.Code() != fulmar.InvalidArgument || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseEncode || !strings.Contains(e.Message(), test.refused) || arrived != "no call" {
				t.Errorf("%s: %v: code %v, %v, the server sees %q; want %q", name, e, e.Code(), e.Executed(), arrived, test.refused)
			}
		}
	})
	// Without headers there is nothing to be mistaken.
	if err := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.Framed}).Nothing(cases["transient"].ctx); err != nil || arrived != "" {
		t.Errorf("framed: %v, the server sees %q", err, arrived)
	}
}

// TestMetadata_UpToTheLimitArrives: a header that is as large as it may be, with
// a message that is as large as it may be.
func TestMetadata_UpToTheLimitArrives(t *testing.T) {
	const messageBytes = 2000
	eachHeaded(t, func(t *testing.T, protocol fulmar.Protocol) {
		var size int
		server := serve(t, fulmar.ServerConfig{MaxMessageBytes: messageBytes}, &testservice.Stub{
			OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
				call, _ := fulmar.CallFrom(ctx)
				value, _ := call.Metadata().Persistent("k")
				size = len(value)
				return message, fulmar.SetReplyMetadata(ctx, "k", value)
			},
		})
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, MaxMessageBytes: messageBytes})
		reply := body(t, &testservice.EchoEchoResult{Success: &testservice.Message{}})
		text := strings.Repeat("x", messageBytes-thriftwire.AppendedHeaderSize("echo")-len(reply))
		// Both headers have a few keys more; the reply's may be a little longer.
		largest := 0
		for value := limits.HeaderInfoBytes - 400; value < limits.HeaderInfoBytes; value++ {
			ctx := fulmar.WithPersistent(context.Background(), "k", strings.Repeat("v", value))
			var back map[string]string
			_, err := api.Echo(ctx, &testservice.Message{Text: text}, fulmar.ReceiveMetadata(&back))
			if err != nil {
				if e := asError(t, err); e.Code() != fulmar.ResourceExhausted || e.Phase() != fulmar.PhaseEncode {
					t.Fatalf("a value of %d bytes: %v", value, err)
				}
				break
			}
			if largest = value; size != value || len(back["k"]) != value {
				t.Fatalf("a value of %d bytes arrives as %d and comes back as %d", value, size, len(back["k"]))
			}
		}
		if largest < limits.HeaderInfoBytes-300 {
			t.Errorf("the largest value that arrives has %d bytes", largest)
		}
	})
}

// TestMetadata_LargestMessagesMayArriveInPieces: a buffer must hold header and
// message, both as large as they may be.
func TestMetadata_LargestMessagesMayArriveInPieces(t *testing.T) {
	const messageBytes = 2000
	largest := func(kind thriftwire.MessageType, sequence int32, body []byte) []byte {
		const besides = 2 + 3 + 4 + 1 // protocol and transforms, the block, the pair and its key
		head := ttheader.Head{Sequence: sequence, Strings: pairs("k", strings.Repeat("x", limits.HeaderInfoBytes-besides))}
		return headed(t, head, frame(message(kind, "echo", sequence, body)))
	}
	text := strings.Repeat("x", messageBytes-thriftwire.AppendedHeaderSize("echo")-len(body(t, &testservice.EchoEchoResult{Success: &testservice.Message{}})))
	request := largest(thriftwire.Call, 1, body(t, &testservice.EchoEchoArgs{Message: &testservice.Message{Text: text}}))
	reply := largest(thriftwire.Reply, 1, body(t, &testservice.EchoEchoResult{Success: &testservice.Message{Text: text}}))
	for _, left := range []int{1, 10, 17, 18, 19, 30} {
		inPieces := func(t *testing.T, conn io.Writer, b []byte) {
			write(t, conn, b[:len(b)-left])
			time.Sleep(time.Second)
			write(t, conn, b[len(b)-left:])
		}
		simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxMessageBytes: messageBytes}, fulmar.ClientConfig{}, &testservice.Stub{}, func(s *simulation) {
			conn := s.connect()
			inPieces(t, conn, request)
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if answer, err := nextHeaded(conn); err != nil || answer.Type != thriftwire.Reply {
				t.Errorf("the server, %d bytes later: %v, %v", left, answer.Type, err)
			}
			_ = conn.Close()
		})
		withPeer(t, fulmar.ClientConfig{MaxMessageBytes: messageBytes}, func(client *fulmar.Client, accept func() net.Conn) {
			var called sync.WaitGroup
			called.Go(func() {
				if got, err := testservice.NewEchoClient(client).Echo(context.Background(), &testservice.Message{}); err != nil || got.Text != text {
					t.Errorf("the client, %d bytes later: %v", left, err)
				}
			})
			conn := accept()
			readHeaded(t, conn)
			inPieces(t, conn, reply)
			called.Wait()
			_ = conn.Close()
		})
	}
}

// TestMetadata_ReplyThatIsTooLarge: the caller learns that, instead of waiting.
func TestMetadata_ReplyThatIsTooLarge(t *testing.T) {
	outcomes := map[string]error{
		"success":          nil,
		"an error":         fulmar.NewError(fulmar.NotFound, "not there"),
		"a declared error": &testservice.Refused{},
		"a business error": fulmar.NewBusinessError(7, "no", nil),
	}
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
			for i := range limits.HeaderPairs + 1 {
				if err := fulmar.SetReplyMetadata(ctx, fmt.Sprint(i), "v"); err != nil {
					return nil, err
				}
			}
			return message, outcomes[message.Text]
		},
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	for range 2 { // on a connection of its own, and on a shared one
		for name, outcome := range outcomes {
			_, err := api.Echo(context.Background(), &testservice.Message{Text: name})
			e := asError(t, err)
			want, code := fmt.Sprintf("key-value pairs (limit %d)", limits.HeaderPairs), fulmar.Internal
			if name == "an error" {
				// The metadata is lost, what happened is not.
				want, code = "not there", fulmar.CodeOf(outcome)
			}
			if e.Code() != code || e.Executed() != fulmar.ExecutedYes || !strings.Contains(e.Message(), want) {
				t.Errorf("%s: %v: code %v, %v; want %v with %q", name, e, e.Code(), e.Executed(), code, want)
			}
		}
	}
}
