package fulmar_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// mishap is a way in which a call fails. What is not set is as usual: a server with the
// stub, reached over a network in memory with a delay of a millisecond each way, so that
// times are the same in every run.
type mishap struct {
	what   string
	client fulmar.ClientConfig
	server fulmar.ServerConfig
	stub   testservice.Stub
	// feed is the service with streams.
	feed *feed
	// waits: the method "nothing" runs until the end.
	waits bool
	// answer, if set, is all that a server says to each connection, once it has the
	// first bytes of a request. It then closes.
	answer func() []byte
	// absent: nobody listens.
	absent bool
	// meanwhile, if set, happens 50 ms later.
	meanwhile func(m *stage, cancel func())
	// call makes the call that fails.
	call func(ctx context.Context, t *testing.T, m *stage) error
}

// stage is where a mishap happens.
type stage struct {
	network *simnet.Network
	client  *fulmar.Client
	api     testservice.EchoClient
}

const stageAddress = "orders.internal:8888"

// fail lets a mishap happen and returns the error of the call.
func (m mishap) fail(t *testing.T, protocol fulmar.Protocol) (failure error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{Delay: time.Millisecond})
		over := make(chan struct{})
		end := m.listen(t, network, over)
		defer func() {
			close(over)
			end()
		}()
		config := m.client
		config.Target, config.Protocol = stageAddress, protocol
		if config.Dial == nil {
			config.Dial = network.Dial
		}
		client, err := fulmar.NewClient(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stage := &stage{network, client, testservice.NewEchoClient(client)}
		if m.meanwhile != nil {
			time.AfterFunc(50*time.Millisecond, func() { m.meanwhile(stage, cancel) })
		}
		failure = m.call(ctx, t, stage)
		_ = client.Close()
	})
	return failure
}

// listen starts what the mishap has for a server, and returns what ends it.
func (m mishap) listen(t *testing.T, network *simnet.Network, over <-chan struct{}) (end func()) {
	if m.absent {
		return func() {}
	}
	listener, err := network.Listen(stageAddress)
	if err != nil {
		t.Fatal(err)
	}
	if m.answer != nil {
		go answerOnce(listener, m.answer())
		return func() { _ = listener.Close() }
	}
	config := m.server
	config.Listener, config.Logger = listener, slog.New(slog.DiscardHandler)
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	if m.waits {
		m.stub.OnNothing = func(context.Context) error {
			<-over
			return nil
		}
	}
	testservice.RegisterEchoServer(server, &m.stub)
	testservice.RegisterFeedServer(server, cmp.Or(m.feed, new(feed)))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	return func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func answerOnce(listener net.Listener, answer []byte) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if _, err := conn.Read(make([]byte, 4<<10)); err == nil {
			_, _ = conn.Write(answer)
		}
		_ = conn.Close()
	}
}

func callNothing(ctx context.Context, _ *testing.T, m *stage) error { return m.api.Nothing(ctx) }

func callEcho(message *testservice.Message) func(context.Context, *testing.T, *stage) error {
	return func(ctx context.Context, _ *testing.T, m *stage) error {
		_, err := m.api.Echo(ctx, message)
		return err
	}
}

// nested returns a message in which others are, so deep.
func nested(depth int) *testservice.Message {
	inner := testservice.Message{}
	for range depth {
		inner = testservice.Message{Parts: []testservice.Message{inner}}
	}
	return &inner
}

// returning is a stub whose method "nothing" returns err.
func returning(err error) testservice.Stub {
	return testservice.Stub{OnNothing: func(context.Context) error { return err }}
}

// beforeTheNetwork are mishaps that this process notices by itself.
func beforeTheNetwork() []mishap {
	long := &testservice.Message{Text: strings.Repeat("x", 2000)}
	return []mishap{
		{what: "the request is too long", client: fulmar.ClientConfig{MaxMessageBytes: 900}, call: callEcho(long)},
		{what: "the request nests too deeply", client: fulmar.ClientConfig{MaxDepth: 20}, call: callEcho(nested(30))},
		{what: "the deadline has passed", call: func(ctx context.Context, _ *testing.T, m *stage) error {
			return m.api.Nothing(ctx, fulmar.Timeout(0))
		}},
		{what: "the caller has canceled", call: func(ctx context.Context, _ *testing.T, m *stage) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return m.api.Nothing(ctx)
		}},
		{what: "the client is closed", call: func(ctx context.Context, _ *testing.T, m *stage) error {
			_ = m.client.Close()
			return m.api.Nothing(ctx)
		}},
		{what: "too many calls wait for a connection", client: fulmar.ClientConfig{MaxConnections: 1, MaxWaiting: 1},
			waits: true, call: callTooMany},
	}
}

// callTooMany makes calls of which one has the connection, and one waits for it.
func callTooMany(ctx context.Context, _ *testing.T, m *stage) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 3)
	for range 3 {
		go func() { ended <- m.api.Nothing(ctx) }()
		synctest.Wait()
	}
	err := <-ended
	cancel()
	<-ended
	<-ended
	return err
}

// onTheWay are mishaps of connections.
func onTheWay() []mishap {
	return []mishap{
		{what: "nobody listens at the address", absent: true, call: callNothing},
		{what: "the server does not answer the attempt to connect", call: func(ctx context.Context, _ *testing.T, m *stage) error {
			m.network.Partition(stageAddress, true)
			defer m.network.Partition(stageAddress, false)
			return m.api.Nothing(ctx)
		}},
		{what: "Dial of the configuration fails", client: fulmar.ClientConfig{
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no tunnel") },
		}, call: callNothing},
		{what: "no answer in time", waits: true, call: func(ctx context.Context, _ *testing.T, m *stage) error {
			return m.api.Nothing(ctx, fulmar.Timeout(200*time.Millisecond))
		}},
		{what: "the caller cancels meanwhile", waits: true, meanwhile: func(_ *stage, cancel func()) { cancel() }, call: callNothing},
		{what: "the client is closed meanwhile", waits: true, meanwhile: func(m *stage, _ func()) { _ = m.client.Close() }, call: callNothing},
		{what: "the connection breaks meanwhile", waits: true, meanwhile: func(m *stage, _ func()) { m.network.Cut(stageAddress) }, call: callNothing},
		{what: "the server closes without an answer", answer: func() []byte { return nil }, call: callNothing},
		{what: "the server speaks something else", answer: func() []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, call: callNothing},
		{what: "the reply is cut off", answer: func() []byte { return replyOf("nothing", 1, nil)[:8] }, call: callNothing},
	}
}

func replyOf(method string, sequence int32, body []byte) []byte {
	return frame(message(thriftwire.Reply, method, sequence, body))
}

// fromTheServer are mishaps that the server tells, or that its replies have.
func fromTheServer() []mishap {
	long := &testservice.Message{Text: strings.Repeat("x", 2000)}
	return []mishap{
		{what: "the reply is longer than the client takes", client: fulmar.ClientConfig{MaxMessageBytes: 900}, stub: testservice.Stub{
			OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) { return long, nil },
		}, call: callEcho(&testservice.Message{})},
		{what: "the request is longer than the server takes", server: fulmar.ServerConfig{MaxMessageBytes: 900}, call: callEcho(long)},
		{what: "the request nests deeper than the server takes", server: fulmar.ServerConfig{MaxDepth: 20}, call: callEcho(nested(30))},
		{what: "the server runs as many calls as it may", server: fulmar.ServerConfig{MaxCalls: 1}, waits: true,
			client: fulmar.ClientConfig{}, call: callTooMany},
		{what: "as many calls wait to run on the server as may", server: fulmar.ServerConfig{MaxRunningCalls: 1, MaxQueuedCalls: 1}, waits: true,
			call: callTooMany},
		{what: "the call waits too long to run on the server", server: fulmar.ServerConfig{MaxRunningCalls: 1}, waits: true,
			call: callTooMany},
		{what: "the handler returns an error", stub: returning(errors.New("disk full")), call: callNothing},
		{what: "the handler returns an error with a code", stub: returning(fulmar.NewError(fulmar.NotFound, "no such order")), call: callNothing},
		{what: "the handler returns a business error", stub: returning(fulmar.NewBusinessError(1001, "limit reached", nil)), call: callNothing},
		{what: "the handler returns a declared exception", stub: testservice.Stub{
			OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
				return nil, &testservice.Refused{Reason: "closed", Limit: 7}
			},
		}, call: callEcho(&testservice.Message{})},
		{what: "the handler returns neither a result nor an error", stub: testservice.Stub{
			OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) { return nil, nil },
		}, call: callEcho(&testservice.Message{})},
		{what: "the handler returns more than the server may send", server: fulmar.ServerConfig{MaxMessageBytes: 900}, stub: testservice.Stub{
			OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) { return long, nil },
		}, call: callEcho(&testservice.Message{})},
		{what: "the handler panics", stub: testservice.Stub{OnNothing: func(context.Context) error { panic("index out of range") }}, call: callNothing},
		{what: "the service is not registered", call: func(ctx context.Context, _ *testing.T, m *stage) error {
			_, err := testservice.NewCalculatorClient(renamed{m.client}).Add(ctx, 1, 2)
			return err
		}},
	}
}

// renamed calls a service by a name that nobody has.
type renamed struct{ fulmar.Caller }

func (r renamed) Call(ctx context.Context, method *fulmar.MethodDesc, request, reply any, options ...fulmar.CallOption) error {
	other := &fulmar.MethodDesc{Service: "Warehouse", Name: "stock", Codec: method.Codec}
	return r.Caller.Call(ctx, other, request, reply, options...)
}

// TestErrors_AreInTheCatalogue lets everything go wrong that can, with a protocol that has
// headers and one that has none, and compares the texts with the guide's page.
func TestErrors_AreInTheCatalogue(t *testing.T) {
	unaryProtocols, unaryNames := []fulmar.Protocol{fulmar.TTHeader, fulmar.Framed, fulmar.GRPC}, []string{"framed", "gRPC"}
	var page bytes.Buffer
	io.WriteString(&page, catalogueHead)
	for _, group := range []struct {
		title   string
		mishaps []mishap
		// protocols are tried, and others are the names of all but the first.
		protocols []fulmar.Protocol
		others    []string
	}{
		{"Before anything was sent", beforeTheNetwork(), unaryProtocols, unaryNames},
		{"On the way", onTheWay(), unaryProtocols, unaryNames},
		{"In the TLS handshake", inTheHandshake(t), unaryProtocols[:2], unaryNames[:1]},
		{"What the server says", fromTheServer(), unaryProtocols, unaryNames},
		{"What policies and registries decide", byPolicies(), unaryProtocols, unaryNames},
		{"In streams", inStreams(), []fulmar.Protocol{fulmar.GRPC, fulmar.TTHeader}, []string{"TTHeader"}},
	} {
		fmt.Fprintf(&page, "\n## %s\n\n| what happens | the error |\n|---|---|\n", group.title)
		for _, m := range group.mishaps {
			var texts []string
			for _, protocol := range group.protocols {
				err := m.fail(t, protocol)
				if err == nil {
					t.Fatalf("%s: no error", m.what)
				}
				text := moreThan.ReplaceAllString(err.Error(), "message of 2045 bytes or more")
				texts = append(texts, strings.ReplaceAll(text, "|", `\|`))
			}
			fmt.Fprintf(&page, "| %s | `%s` |\n", m.what, texts[0])
			for i, name := range group.others {
				if texts[i+1] != texts[0] {
					fmt.Fprintf(&page, "| the same, %s | `%s` |\n", name, texts[i+1])
				}
			}
		}
	}
	testkit.Golden(t, "docs/guide/error-catalogue.md", page.Bytes())
}

// moreThan matches what depends on the memory that earlier messages of the method took: how
// much was written of a message when it turned out to be too long.
var moreThan = regexp.MustCompile(`message of \d+ bytes or more`)

const catalogueHead = `# All errors of a call

What a call fails with, by what happened; [errors](errors.md) says how to tell them apart, which is not by their texts. The server is at ` + stageAddress + `, a millisecond away. Where framed Thrift, which carries no headers, or gRPC differs from TTHeader, the next lines have their texts.

A test makes each of these happen and compares this page with what it got.
`
