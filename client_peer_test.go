package fulmar_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// fakeServer answers each connection's first framed call with what reply says.
func fakeServer(t *testing.T, reply func(call thriftwire.Header) []byte) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var length [4]byte
			if _, err := io.ReadFull(conn, length[:]); err == nil {
				payload := make([]byte, binary.BigEndian.Uint32(length[:]))
				_, _ = io.ReadFull(conn, payload)
				header, _, _, _ := thriftwire.ParseHeader(payload)
				_, _ = conn.Write(reply(header))
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// TestClient_RefusesWrongReplies: whatever a server answers, the call ends with
// an error that says what was wrong.
func TestClient_RefusesWrongReplies(t *testing.T) {
	sum := body(t, &testservice.EchoAddResult{Success: thrift.Some[int32](3)})
	cases := map[string]struct {
		reply    func(call thriftwire.Header) []byte
		code     fulmar.Code
		executed fulmar.Executed
		text     string
	}{
		"wrong sequence id": {func(call thriftwire.Header) []byte {
			return frame(message(thriftwire.Reply, "add", call.Sequence+1, sum))
		}, fulmar.Internal, fulmar.ExecutedMaybe, "sequence id"},
		"wrong method": {func(call thriftwire.Header) []byte {
			return frame(message(thriftwire.Reply, "sub", call.Sequence, sum))
		}, fulmar.Internal, fulmar.ExecutedMaybe, `for method "sub"`},
		"a call": {func(call thriftwire.Header) []byte {
			return frame(message(thriftwire.Call, "add", call.Sequence, sum))
		}, fulmar.Internal, fulmar.ExecutedMaybe, "a call arrived instead of a reply"},
		"no result": {func(call thriftwire.Header) []byte {
			return frame(message(thriftwire.Reply, "add", call.Sequence, []byte{0}))
		}, fulmar.Internal, fulmar.ExecutedYes, "neither a result nor an error"},
		"broken body": {func(call thriftwire.Header) []byte {
			return frame(message(thriftwire.Reply, "add", call.Sequence, []byte{8, 0, 0, 1}))
		}, fulmar.Internal, fulmar.ExecutedYes, "i32 needs 4 bytes"},
		"exception without a name": {func(thriftwire.Header) []byte {
			exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod, Message: "what?"}
			b := make([]byte, exception.Size())
			exception.Put(b)
			return frame(message(thriftwire.Exception, "", 0, b))
		}, fulmar.Unimplemented, fulmar.ExecutedMaybe, "what?"},
		"broken exception": {func(call thriftwire.Header) []byte {
			return frame(message(thriftwire.Exception, "add", call.Sequence, []byte{0x0b, 0, 1, 0x7f}))
		}, fulmar.Internal, fulmar.ExecutedMaybe, "application exception"},
		"exception for another call": {func(call thriftwire.Header) []byte {
			exception := thriftwire.ApplicationException{Type: thriftwire.ExceptionUnknownMethod, Message: "what?"}
			b := make([]byte, exception.Size())
			exception.Put(b)
			return frame(message(thriftwire.Exception, "notify", call.Sequence+7, b))
		}, fulmar.Internal, fulmar.ExecutedMaybe, "sequence id"},
		"too long": {func(thriftwire.Header) []byte {
			return append(binary.BigEndian.AppendUint32(nil, limits.FrameLengthMax), message(thriftwire.Reply, "add", 1, sum)...)
		}, fulmar.ResourceExhausted, fulmar.ExecutedMaybe, fmt.Sprintf("message of %d bytes (limit %d)", limits.FrameLengthMax, limits.MessageBytes)},
		"HTTP":           {func(thriftwire.Header) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, fulmar.Internal, fulmar.ExecutedMaybe, "first bytes 48 54 54 50"},
		"half a reply":   {func(thriftwire.Header) []byte { return []byte{0, 0, 0, 30, 0x80, 1} }, fulmar.Unavailable, fulmar.ExecutedMaybe, "EOF"},
		"nothing at all": {func(thriftwire.Header) []byte { return nil }, fulmar.Unavailable, fulmar.ExecutedMaybe, "EOF"},
		"zero length":    {func(thriftwire.Header) []byte { return []byte{0, 0, 0, 0, 0, 0} }, fulmar.Internal, fulmar.ExecutedMaybe, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			api := dial(t, fulmar.ClientConfig{Target: fakeServer(t, test.reply), Protocol: fulmar.Framed})
			_, err := api.Add(context.Background(), 1, 2)
			e := asError(t, err)
			if e.Code() != test.code || e.Executed() != test.executed || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v: code %v, %v; want %v, %v and %q", err, e.Code(), e.Executed(), test.code, test.executed, test.text)
			}
		})
	}
}

// TestClient_DropsConnectionsWithMoreThanTheReply: bytes that nobody asked for
// must not become the reply of the next call.
func TestClient_DropsConnectionsWithMoreThanTheReply(t *testing.T) {
	extra := func(call thriftwire.Header) []byte {
		reply := frame(message(thriftwire.Reply, "add", call.Sequence, body(t, &testservice.EchoAddResult{Success: thrift.Some[int32](3)})))
		forged := frame(message(thriftwire.Reply, "add", call.Sequence+1, body(t, &testservice.EchoAddResult{Success: thrift.Some[int32](666)})))
		return append(reply, forged...)
	}
	api := dial(t, fulmar.ClientConfig{Target: fakeServer(t, extra), Protocol: fulmar.Framed, MaxConnections: 1})
	for range 20 {
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Fatalf("Add = %d, %v; want 3", sum, err)
		}
	}
}

// TestClient_LearnsWhyALongRequestWasRefused: the server stops reading, and the
// client is still writing when it learns why.
func TestClient_LearnsWhyALongRequestWasRefused(t *testing.T) {
	const limit, size = 64 << 10, 12 << 20
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{MaxMessageBytes: limit}, adder())
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		_, err := api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", size)})
		if e := asError(t, err); e.Origin() != fulmar.OriginRemote || !strings.Contains(e.Message(), "limit 65536") {
			t.Errorf("Echo: %v", err)
		}
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("Add afterwards = %d, %v", sum, err)
		}
	})
}

func TestClient_RefusesToSendTooMuch(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{})
	api := dial(t, fulmar.ClientConfig{Target: server.address, MaxMessageBytes: 1000})
	_, err := api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", 1001)})
	e := asError(t, err)
	if e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseEncode || !strings.Contains(err.Error(), "limit 1000") {
		t.Errorf("Echo: %v", err)
	}
	if _, err := api.Echo(context.Background(), &testservice.Message{Text: "x"}); err != nil {
		t.Errorf("Echo afterwards: %v", err)
	}
}

// TestClient_SurvivesAServerThatRestarts: pooled connections that the server
// closed meanwhile are not used again.
func TestClient_SurvivesAServerThatRestarts(t *testing.T) {
	first := serve(t, fulmar.ServerConfig{}, adder())
	api := dial(t, fulmar.ClientConfig{Target: first.address})
	if _, err := api.Add(context.Background(), 1, 2); err != nil {
		t.Fatal(err)
	}
	// As long as this end of a connection is open, the system gives nobody else the port.
	connect(t, first.address)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Add(context.Background(), 1, 2); asError(t, err).Executed() != fulmar.ExecutedNo {
		t.Errorf("while nobody serves: %v; want not executed", err)
	}
	serve(t, fulmar.ServerConfig{Address: first.address}, adder())
	for range 3 {
		if _, err := api.Add(context.Background(), 1, 2); err != nil {
			t.Errorf("after the restart: %v", err)
		}
	}
}

func TestClient_WaitsForOneOfItsConnections(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(context.Context) error { close(started); <-release; return nil },
		OnAdd:     func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
	})
	api := dial(t, fulmar.ClientConfig{Target: server.address, MaxConnections: 1, MaxWaiting: 1})
	blocked := make(chan error, 1)
	go func() { blocked <- api.Nothing(context.Background()) }()
	<-started
	// Only one call may wait; which of these finds the place is up to them.
	results := make(chan error, 3)
	for range 3 {
		go func() { _, err := api.Add(context.Background(), 1, 2); results <- err }()
	}
	for range 2 {
		e := asError(t, <-results)
		if e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || e.Phase() != fulmar.PhaseAcquire {
			t.Errorf("a call too many: %v", e)
		}
	}
	close(release)
	if err := <-blocked; err != nil {
		t.Errorf("the first call: %v", err)
	}
	if err := <-results; err != nil {
		t.Errorf("the call that waited: %v", err)
	}
}

func TestClient_Close(t *testing.T) {
	release := make(chan struct{})
	started := make(chan struct{})
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(context.Context) error { close(started); <-release; return nil },
	})
	defer close(release)
	client := dialAny(t, fulmar.ClientConfig{Target: server.address})
	api := testservice.NewEchoClient(client)
	running := make(chan error, 1)
	go func() { running <- api.Nothing(context.Background()) }()
	<-started
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if e := asError(t, <-running); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedMaybe {
		t.Errorf("the call in progress: %v", e)
	}
	if e := asError(t, api.Nothing(context.Background())); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Error(), "client is closed") {
		t.Errorf("a later call: %v", e)
	}
}
