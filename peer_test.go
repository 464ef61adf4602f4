package fulmar_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// message returns a message of the Binary protocol as bytes.
func message(kind thriftwire.MessageType, name string, sequence int32, body []byte) []byte {
	b := make([]byte, thriftwire.AppendedHeaderSize(name))
	thriftwire.PutHeader(b, kind, name, sequence)
	return append(b, body...)
}

// frame puts the length before a message.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// body returns a generated struct as bytes.
func body(t *testing.T, s thrift.Struct) []byte {
	t.Helper()
	b, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readFrame reads one framed message and takes it apart.
func readFrame(t *testing.T, r io.Reader) (thriftwire.Header, []byte) {
	t.Helper()
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		t.Fatalf("reading a reply: %v", err)
	}
	payload := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(r, payload); err != nil {
		t.Fatalf("reading a reply of %d bytes: %v", len(payload), err)
	}
	header, size, _, err := thriftwire.ParseHeader(payload)
	if err != nil || size == 0 {
		t.Fatalf("the reply % x has no header: %v", payload, err)
	}
	return header, payload[size:]
}

// wantException reads one framed message, which must be an exception.
func wantException(t *testing.T, r io.Reader, sequence int32, kind thriftwire.ExceptionType, text string) {
	t.Helper()
	header, body := readFrame(t, r)
	exception, err := thriftwire.ParseApplicationException(body)
	if err != nil {
		t.Fatal(err)
	}
	if header.Type != thriftwire.Exception || header.Sequence != sequence || exception.Type != kind || !strings.Contains(exception.Message, text) {
		t.Errorf("got %v %d with exception %d %q; want sequence %d, exception %d with %q",
			header.Type, header.Sequence, exception.Type, exception.Message, sequence, kind, text)
	}
}

func write(t *testing.T, w io.Writer, pieces ...[]byte) {
	t.Helper()
	for _, piece := range pieces {
		if _, err := w.Write(piece); err != nil {
			t.Fatalf("writing: %v", err)
		}
	}
}

// addCall returns the bare message of a call Echo.add(left, right).
func addCall(t *testing.T, sequence, left, right int32) []byte {
	return message(thriftwire.Call, "add", sequence, body(t, &testservice.EchoAddArgs{Left: left, Right: right}))
}

// wantSum reads one framed reply to add.
func wantSum(t *testing.T, r io.Reader, sequence, sum int32) {
	t.Helper()
	header, body := readFrame(t, r)
	var result testservice.EchoAddResult
	if err := thrift.Unmarshal(body, &result); err != nil {
		t.Fatal(err)
	}
	if got, _ := result.Success.Get(); header.Type != thriftwire.Reply || string(header.Name) != "add" || header.Sequence != sequence || got != sum {
		t.Errorf("got %v %q %d with %d; want the reply %d with %d", header.Type, header.Name, header.Sequence, got, sequence, sum)
	}
}

func adder() *testservice.Stub {
	return &testservice.Stub{
		OnAdd: func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
	}
}

func TestServer_AnswersPipelinedCallsInOrder(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
		if left%3 == 0 {
			runtime.Gosched() // the connection goes on without the call
		}
		return left + right, nil
	}})
	conn := connect(t, server.address)
	var all []byte
	const calls, rounds = 200, 10
	for i := range int32(calls) {
		all = append(all, frame(addCall(t, i, i, 1))...)
		if i%5 == 4 { // answered by who reads it
			all = append(all, frame(message(thriftwire.Call, "nope", i, []byte{0}))...)
		}
	}
	for range rounds {
		write(t, conn, all)
		for i := range int32(calls) {
			wantSum(t, conn, i, i+1)
			if i%5 == 4 {
				wantException(t, conn, i, thriftwire.ExceptionUnknownMethod, "nope")
			}
		}
	}
}

func TestServer_AnswersAPeerThatStoppedSending(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	write(t, conn, frame(addCall(t, 1, 1, 1)), frame(addCall(t, 2, 2, 2)), frame(addCall(t, 3, 3, 3)))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for i := range int32(3) {
		wantSum(t, conn, i+1, 2*(i+1))
	}
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the last reply: %d, %v; want EOF", n, err)
	}
}

func TestServer_ProtocolsMayAlternate(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	for i := range int32(3) {
		write(t, conn, frame(addCall(t, i, i, i)))
		wantSum(t, conn, i, 2*i)
		call := addCall(t, 100+i, 5, 5)
		write(t, conn, call)
		reply := make([]byte, len(message(thriftwire.Reply, "add", 0, body(t, &testservice.EchoAddResult{Success: thrift.Some[int32](10)}))))
		if _, err := io.ReadFull(conn, reply); err != nil || reply[0] != 0x80 || reply[3] != byte(thriftwire.Reply) {
			t.Fatalf("the bare reply is % x, %v", reply, err)
		}
	}
}

// TestServer_RefusesBadMessagesAndGoesOn: a frame has an end whatever is in it,
// so one bad message costs one call.
func TestServer_RefusesBadMessagesAndGoesOn(t *testing.T) {
	// A message without its required text.
	missing := []byte{0x0c, 0, 1, 0, 0}
	depth := append(bytes.Repeat([]byte{0x0c, 0, 99}, 100_000), make([]byte, 100_001)...)
	cases := map[string]struct {
		message []byte
		kind    thriftwire.ExceptionType
		text    string
	}{
		"unknown method":     {message(thriftwire.Call, "nope", 7, []byte{0}), thriftwire.ExceptionUnknownMethod, `unknown method "nope"`},
		"unknown service":    {message(thriftwire.Call, "Nope:add", 7, []byte{0}), thriftwire.ExceptionUnknownService, `unknown service "Nope"`},
		"other spelling":     {message(thriftwire.Call, "Add", 7, []byte{0}), thriftwire.ExceptionUnknownMethod, "unknown method"},
		"no name":            {message(thriftwire.Call, "", 7, []byte{0}), thriftwire.ExceptionProtocolError, "empty method name"},
		"a reply":            {message(thriftwire.Reply, "add", 7, []byte{0}), thriftwire.ExceptionInvalidMessageType, "message type reply is not that of a call"},
		"unknown type":       {message(9, "add", 7, []byte{0}), thriftwire.ExceptionInvalidMessageType, "unknown message type 9"},
		"missing field":      {message(thriftwire.Call, "echo", 7, missing), thriftwire.ExceptionProtocolError, "required but absent: text"},
		"truncated":          {message(thriftwire.Call, "add", 7, []byte{8, 0, 1, 0}), thriftwire.ExceptionProtocolError, "i32 needs 4 bytes"},
		"20,000,000 entries": {message(thriftwire.Call, "echo", 7, []byte{0x0c, 0, 1, 0x0d, 0, 4, 0x0b, 0x0b, 1, 0x31, 0x2d, 0}), thriftwire.ExceptionProtocolError, "declares 20000000 elements"},
		"100,000 levels":     {message(thriftwire.Call, "echo", 7, depth), thriftwire.ExceptionProtocolError, fmt.Sprintf("deeper than %d", limits.Depth)},
		"trailing bytes":     {message(thriftwire.Call, "nothing", 7, []byte{0, 0, 0}), thriftwire.ExceptionProtocolError, "2 bytes follow"},
		"no header":          {[]byte{0x80, 1, 0, 1}, thriftwire.ExceptionProtocolError, "ends inside the message header"},
		"too long":           {message(thriftwire.Call, "echo", 7, make([]byte, 2<<20)), thriftwire.ExceptionProtocolError, "limit 1048576"},
	}
	server := serve(t, fulmar.ServerConfig{MaxMessageBytes: 1 << 20}, adder())
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, server.address)
			sequence := int32(7)
			if name == "no header" {
				sequence = 0
			}
			write(t, conn, frame(test.message))
			wantException(t, conn, sequence, test.kind, test.text)
			write(t, conn, frame(addCall(t, 8, 1, 2)))
			wantSum(t, conn, 8, 3)
		})
	}
}

// TestServer_LogsArgumentsThatCannotBeDecoded: the operator of the server sees
// them too, once a call.
func TestServer_LogsArgumentsThatCannotBeDecoded(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	write(t, conn, frame(message(thriftwire.Call, "add", 7, []byte{8, 0, 1, 0})))
	wantException(t, conn, 7, thriftwire.ExceptionProtocolError, "i32 needs 4 bytes")
	if logged := server.log.String(); strings.Count(logged, "call refused") != 1 || !strings.Contains(logged, "i32 needs 4 bytes") || !strings.Contains(logged, "method=add") {
		t.Errorf("logged %q, want one refused call of add with its reason", logged)
	}
}

// TestServer_AnswersTypeOnewayByTheIDL: a method with a result is answered even
// if its caller writes that it wants no answer, whether it succeeds or not.
func TestServer_AnswersTypeOnewayByTheIDL(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	good := addCall(t, 1, 1, 2)
	good[3] = byte(thriftwire.Oneway)
	write(t, conn, frame(good))
	wantSum(t, conn, 1, 3)
	write(t, conn, frame(message(thriftwire.Oneway, "add", 2, []byte{8, 0, 1, 0})))
	wantException(t, conn, 2, thriftwire.ExceptionProtocolError, "i32 needs 4 bytes")
}

// TestClient_LeavesABareConnectionAfterARefusal: the server closes it, so the
// next call must not find it in the pool.
func TestClient_LeavesABareConnectionAfterARefusal(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{MaxMessageBytes: 1000}, &testservice.Stub{})
	api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.Bare})
	for range 50 {
		if _, err := api.Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", 1500)}); fulmar.CodeOf(err) != fulmar.InvalidArgument {
			t.Fatalf("a message that is too long: %v", err)
		}
		if _, err := api.Echo(context.Background(), &testservice.Message{Text: "x"}); err != nil {
			t.Fatalf("the call after it: %v", err)
		}
	}
}

// TestServer_NeverAnswersOneway: an answer that nobody reads would be taken for
// the answer of the next call, so even an unknown method gets none.
func TestServer_NeverAnswersOneway(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	for _, call := range [][]byte{
		message(thriftwire.Oneway, "nope", 1, []byte{0}),
		message(thriftwire.Oneway, "notify", 2, []byte{0}),
		message(thriftwire.Call, "notify", 3, []byte{0}),
		message(thriftwire.Oneway, "notify", 4, []byte{0xff}),
		message(thriftwire.Oneway, "", 5, []byte{0}),
	} {
		write(t, conn, frame(call))
	}
	write(t, conn, frame(addCall(t, 6, 1, 2)))
	wantSum(t, conn, 6, 3)
}

// TestServer_ClosesWhatHasNoEnd: where a bare message that is broken ends is
// unknown; it is answered, and the connection closed.
func TestServer_ClosesWhatHasNoEnd(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{MaxMessageBytes: 1000}, adder())
	cases := map[string][]byte{
		"bare, 20,000,000 entries": message(thriftwire.Call, "echo", 7, []byte{0x0d, 0, 4, 0x0b, 0x0b, 1, 0x31, 0x2d, 0}),
		"bare, too long":           message(thriftwire.Call, "echo", 7, append([]byte{0x0b, 0, 1, 0, 1, 0, 0}, make([]byte, 1<<16)...)),
		"framed, far too long":     frame(message(thriftwire.Call, "echo", 7, make([]byte, 5000))),
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, server.address)
			write(t, conn, b)
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Fatalf("reading until the end: %v", err)
			}
			if !bytes.Contains(answer, []byte{0x80, 1, 0, byte(thriftwire.Exception)}) || !bytes.Contains(answer, []byte("limit")) && !bytes.Contains(answer, []byte("declares")) {
				t.Errorf("the answer is %q; want an exception", answer)
			}
		})
	}
}

func TestServer_TellsForeignProtocolsApart(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	conn := connect(t, server.address)
	write(t, conn, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
		t.Errorf("HTTP was answered by %q, %v", answer, err)
	}
	if want := "first bytes 47 45 54 20 2f 20 48 54: HTTP/1.1, not enabled"; !strings.Contains(server.log.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, server.log)
	}
	conn = connect(t, server.address)
	write(t, conn, []byte{0x16, 3, 1, 2, 0, 1, 0, 1})
	if answer, err := io.ReadAll(conn); len(answer) > 0 || err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("TLS was answered by % x, %v", answer, err)
	}
}

func TestServer_AllowsOnlyTheProtocolsOfItsList(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{Protocols: []fulmar.Protocol{fulmar.Framed}}, adder())
	if _, err := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.Framed}).Add(context.Background(), 1, 2); err != nil {
		t.Errorf("framed: %v", err)
	}
	for _, protocol := range []fulmar.Protocol{fulmar.Bare, fulmar.TTHeader} {
		_, err := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol}).Add(context.Background(), 1, 2)
		if e := asError(t, err); e.Code() != fulmar.Unavailable {
			t.Errorf("%v: %v; want Unavailable", protocol, err)
		}
	}
}

// TestServer_SilentPeersCostLittle: a peer that sends the beginning of a message
// and waits holds a goroutine and a few hundred bytes (S4 of the fault
// scenarios), whatever length it announced. Both ends are in this process.
func TestServer_SilentPeersCostLittle(t *testing.T) {
	const peers = 500
	perPeer := int64(8 << 10)
	if assert.Enabled {
		// The race detector's stacks are larger.
		perPeer *= 4
	}
	server := serve(t, fulmar.ServerConfig{}, adder())
	api := dial(t, fulmar.ClientConfig{Target: server.address})
	memory := func() int64 {
		if _, err := api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := memory()
	for range peers {
		write(t, connect(t, server.address), []byte{0, 0xff, 0xff, 0xff, 0x80, 1, 0, 1, 0, 0})
	}
	if used := memory() - before; used > peers*perPeer {
		t.Errorf("%d peers hold %d bytes, want at most %d", peers, used, peers*perPeer)
	}
}

// nextFrame returns what the next frame holds, "" if there is none.
func nextFrame(r io.Reader) string {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return ""
	}
	payload, _ := io.ReadAll(io.LimitReader(r, int64(binary.BigEndian.Uint32(size[:]))))
	return string(payload)
}

// answerAndMore returns the answer to a framed message, "" if there is none. Behind it the rest
// of the message and a call of "nothing" must be taken.
func answerAndMore(conn net.Conn, rest []byte) string {
	answer := nextFrame(conn)
	if answer == "" {
		return ""
	}
	_, _ = conn.Write(rest)
	if next := nextFrame(conn); !strings.Contains(next, "nothing") {
		return "then " + strconv.Quote(next)
	}
	return answer
}

// TestServer_UnfinishedMessagesHaveABudget: peers that send most of a long
// message and then wait cannot hold more memory together than the server has
// for them, nor keep others from being served.
func TestServer_UnfinishedMessagesHaveABudget(t *testing.T) {
	const budget, declared, sent, peers = 4 << 20, 3 << 20, 1 << 20, 8
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		server := serve(t, fulmar.ServerConfig{MaxBufferedBytes: budget}, &testservice.Stub{
			OnEcho: func(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
				return &testservice.Message{Text: message.Text[:1]}, nil
			},
		})
		request := message(thriftwire.Call, "echo", 7, body(t, &testservice.EchoEchoArgs{
			Message: &testservice.Message{Text: strings.Repeat("x", declared)}}))
		if protocol == fulmar.Framed {
			request = frame(request)
		}
		var held []net.Conn
		for range peers {
			conn := connect(t, server.address)
			write(t, conn, request[:sent])
			held = append(held, conn)
		}
		api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		for range 100 {
			if _, err := api.Echo(context.Background(), &testservice.Message{Text: "small"}); err != nil {
				t.Fatalf("a small call: %v", err)
			}
		}
		// Three fit, and which three is for the scheduler to say.
		answers := make(chan string, peers)
		for _, conn := range held {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			go func() {
				if protocol != fulmar.Framed {
					answer, _ := io.ReadAll(conn)
					answers <- string(answer)
					return
				}
				// The end of what was refused is known, and the connection goes on behind it.
				answers <- answerAndMore(conn, append(bytes.Clone(request[sent:]), nothingCall()...))
			}()
		}
		for refused := range peers - 3 {
			if answer := <-answers; !strings.Contains(answer, "overloaded") {
				t.Errorf("peer %d of those that do not fit was told %q", refused, answer)
			}
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		for range 3 {
			if answer := <-answers; answer != "" {
				t.Errorf("a peer that fits was told %q", answer)
			}
		}
		big := &testservice.Message{Text: strings.Repeat("x", declared)}
		var err error
		for range 10000 {
			if _, err = api.Echo(context.Background(), big); err == nil {
				return
			}
			if !strings.Contains(asError(t, err).Message(), "overloaded") {
				t.Fatalf("a long call: %v", err)
			}
		}
		t.Errorf("after all peers have gone: %v", err)
	})
}

// TestServer_LogsOfPeersAreBounded: whoever sends rubbish cannot fill a disk.
func TestServer_LogsOfPeersAreBounded(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, adder())
	const attempts = 200
	for range attempts {
		conn := connect(t, server.address)
		write(t, conn, []byte("rubbish!"))
		_, _ = io.ReadAll(conn)
		_ = conn.Close()
	}
	if lines := strings.Count(server.log.String(), "\n"); lines > attempts/2 {
		t.Errorf("%d log lines for %d bad connections", lines, attempts)
	}
}

// TestServer_CallsEndWithTheirConnection: the context of a handler ends when the
// peer resets the connection.
func TestServer_CallsEndWithTheirConnection(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnNothing: func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		},
	})
	conn := connect(t, server.address)
	write(t, conn, frame(message(thriftwire.Call, "nothing", 1, []byte{0})))
	<-started
	if err := conn.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context ended with %v", err)
	}
}
