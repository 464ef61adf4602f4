package ttstream_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// announced is what each HEADER of a client of ours has besides.
const announced = " fulmar-message=16777216 fulmar-window=262144"

func TestConn_Bidirectional(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{})
	id, err := client.conn.Open(ttstream.Request{Method: "chat", Pairs: pairs("isn", "Chat"), Timeout: 1500 * 1e6})
	client.must(err)
	client.send(id, "one")
	settle(client, server)
	server.want("open 1 chat" + announced + " isn=Chat timeout 1500 ms\ndata 1 6f6e65")
	server.must(server.conn.Header(id, pairs("k", "v")))
	server.send(id, "two")
	settle(client, server)
	client.want("header 1 k=v\ndata 1 74776f")
	client.must(client.conn.End(id, nil, nil))
	settle(client, server)
	server.want("end 1")
	server.send(id, "three")
	server.must(server.conn.End(id, pairs("left", "3"), nil))
	settle(client, server)
	client.want("data 1 7468726565\nend 1 left=3")
	for _, s := range []*side{client, server} {
		if _, err := s.conn.Send(id, []byte("late")); !errors.Is(err, ttstream.ErrStreamEnded) {
			t.Errorf("a late message: %v", err)
		}
		s.conn.Release(id)
		if s.conn.Streams() != 0 || len(s.sent()) != 0 {
			t.Error("a stream that was over left something")
		}
	}
}

func TestConn_Errors(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{})
	a, b, c := client.open("a"), client.open("b"), client.open("c")
	settle(client, server)
	server.said()
	server.must(server.conn.End(a, nil, &ttstream.Failure{Code: 6, Message: "no such room"}))
	server.must(server.conn.End(b, pairs("biz-status", "1001", "biz-message", "not today", "biz-extra", `{"left":"3"}`), nil))
	server.must(server.conn.End(c, pairs("biz-status", "many"), nil))
	settle(client, server)
	client.want(strings.Join([]string{
		"header 1", `end 1 failure 6 "no such room"`,
		"header 2", `end 2 biz-extra={"left":"3"} biz-message=not today biz-status=1001 business 1001 "not today" "{\"left\":\"3\"}"`,
		"header 3", `end 3 biz-status=many problem: ttstream: stream 3: TRAILER: ttstream: business status "many" is no number (12003) (12003)`,
	}, "\n"))
}

func TestConn_Cancel(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{})
	a, b := client.open("a"), client.open("b")
	settle(client, server)
	server.said()
	path := ttstream.AppendPath(ttstream.AppendPath("", "front"), "mid")
	client.conn.Reset(a, ttstream.Failure{Code: ttstream.CodeCanceled, Message: "enough"}, path)
	server.conn.Reset(b, ttstream.Failure{Code: ttstream.CodeDownstream, Message: "not you"}, "")
	settle(client, server)
	server.want(`reset 1 ttscp=front,mid failure 12007 "enough" path "front,mid"`)
	client.want(`reset 2 failure 12009 "not you"`)
	// Until the handler has returned the stream counts.
	if server.conn.Streams() != 2 {
		t.Errorf("%d streams", server.conn.Streams())
	}
}

func TestAppendPath(t *testing.T) {
	path := ttstream.ForeignPath
	for range 1000 {
		path = ttstream.AppendPath(path, "a,b")
	}
	if len(path) > limits.StreamPathBytes || !strings.HasPrefix(path, ttstream.ForeignPath+",a_b,a_b") {
		t.Errorf("%d bytes: %.60s", len(path), path)
	}
}

func TestConn_Release(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{})
	a, b := client.open("a"), client.open("b")
	settle(client, server)
	server.said()
	client.conn.Release(a)
	server.conn.Release(b)
	settle(client, server)
	server.want(`reset 1 failure 12007 "canceled"`)
	client.want(`reset 2 failure 12012 "handler has returned"`)
}

// TestConn_Window wants a sender to wait when the receiver does not use what came, with
// others on the connection going on.
func TestConn_Window(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{Window: 1000})
	a := client.open("slow")
	settle(client, server)
	server.keep = true
	sent := 0
	for client.send(a, strings.Repeat("x", 300)) {
		sent++
	}
	if sent != 3 { // 364 each, and the last may go beyond
		t.Fatalf("%d messages went", sent)
	}
	if err := client.conn.End(a, nil, nil); err == nil {
		t.Error("a stream ended well before its messages")
	}
	b := client.open("other")
	if !client.send(b, "y") {
		t.Error("another stream has to wait")
	}
	settle(client, server)
	if _, _, ok := client.conn.Writable(); ok {
		t.Error("room, although nothing was used")
	}
	server.conn.Consume(a, 300)
	server.conn.Consume(a, 300)
	settle(client, server)
	id, _, ok := client.conn.Writable()
	if !ok || id != a || !client.send(a, strings.Repeat("x", 300)) {
		t.Fatalf("no room after use: %d %v", id, ok)
	}
	if _, _, ok := client.conn.Writable(); ok {
		t.Error("a stream is writable that waits for nothing")
	}
}

// TestConn_WindowBeforeAnswer sends more than the window before the server can have said
// what it is. That counts once it did.
func TestConn_WindowBeforeAnswer(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{Window: 1000})
	server.keep = true
	a := client.open("fast")
	for range 10 {
		if !client.send(a, strings.Repeat("x", 300)) {
			t.Fatal("a client waits for a server that may know no windows")
		}
	}
	settle(client, server)
	if server.err != nil || len(server.events) != 11 {
		t.Fatalf("%d events, %v", len(server.events), server.err)
	}
	if client.send(a, "z") {
		t.Error("a client that was told the window goes on")
	}
	for range 9 {
		server.conn.Consume(a, 300)
	}
	settle(client, server)
	if _, _, ok := client.conn.Writable(); !ok {
		t.Error("no room after use")
	}
}

func TestConn_ServerKeepsToWindow(t *testing.T) {
	client, server := newPair(t, ttstream.Config{Window: 500}, ttstream.Config{})
	a := client.open("list")
	settle(client, server)
	client.keep = true
	sent := 0
	for server.send(a, strings.Repeat("x", 200)) {
		sent++
	}
	settle(client, server)
	if sent != 2 {
		t.Fatalf("%d messages went", sent)
	}
	client.conn.Consume(a, 200)
	settle(client, server)
	if id, _, ok := server.conn.Writable(); !ok || id != a {
		t.Error("no room after use")
	}
}

func TestConn_MessageTooLarge(t *testing.T) {
	client, server := newPair(t, ttstream.Config{MessageBytes: 100}, ttstream.Config{MessageBytes: 50})
	a := client.open("a")
	settle(client, server)
	if _, err := client.conn.Send(a, make([]byte, 51)); !errors.Is(err, ttstream.ErrTooLarge) {
		t.Errorf("client: %v", err)
	}
	if _, err := server.conn.Send(a, make([]byte, 101)); !errors.Is(err, ttstream.ErrTooLarge) {
		t.Errorf("server: %v", err)
	}
	// A client that does not know yet learns from what becomes of its stream.
	client, server = newPair(t, ttstream.Config{}, ttstream.Config{MessageBytes: 50})
	a = client.open("a")
	client.send(a, strings.Repeat("x", 51))
	b := client.open("b")
	client.send(b, "fits")
	settle(client, server)
	server.want("open 1 a" + announced + "\nreset 1 problem: ttstream: stream 1: message of 51 bytes (limit 50) (12004)\nopen 2 b" + announced + "\ndata 2 66697473")
	client.want(`reset 1 failure 12004 "message of 51 bytes (limit 50)"`)
	// One that is much longer is not waited for.
	_, server = newPair(t, ttstream.Config{}, ttstream.Config{MessageBytes: 50})
	server.arrive(frame(7, "3", "c", make([]byte, 1000))[:60])
	if server.err == nil {
		t.Error("a message of 20 times the limit did not end the connection")
	}
}

// TestConn_LeaveOut: a message for which there is no room counts as used when its header is
// there.
func TestConn_LeaveOut(t *testing.T) {
	const length = 150 << 10 // more than half of a window
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{})
	a := client.open("a")
	settle(client, server)
	server.said()
	whole := frame(a, "3", "a", make([]byte, length))
	header := len(whole) - length
	if _, used, err := server.conn.LeaveOut(whole[:header-1], 0); used != 0 || err != nil {
		t.Errorf("without all of the header %d bytes are used, %v", used, err)
	}
	event, used, err := server.conn.LeaveOut(whole[:header+10], 0)
	if event.Kind != ttstream.EventData || event.Stream != a || event.Data != nil || used != len(whole) || err != nil {
		t.Errorf("%d bytes are used of %d, %v, and the event is %+v", used, len(whole), err, event)
	}
	if len(server.sent()) == 0 {
		t.Error("the peer is told of no window")
	}
	if event, _, err = server.conn.LeaveOut(frame(9, "3", "gone", make([]byte, length))[:100], 0); event.Kind != ttstream.EventNone || err != nil {
		t.Errorf("a message of no stream: %+v, %v", event, err)
	}
	if _, _, err := server.conn.LeaveOut(frame(9, "2", "b", make([]byte, length))[:100], 0); err == nil {
		t.Error("a HEADER with a payload did not end the connection")
	}
}

func TestConn_Shutdown(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{})
	a := client.open("a")
	settle(client, server)
	server.conn.Shutdown(false)
	b := client.open("b") // crosses
	settle(client, server)
	client.want("go-away 0")
	server.want("open 1 a" + announced + "\nopen 2 b" + announced)
	if _, err := client.conn.Open(ttstream.Request{Method: "c"}); !errors.Is(err, ttstream.ErrGoingAway) || client.conn.CanOpen() {
		t.Errorf("a stream on a connection that goes: %v", err)
	}
	for _, id := range []int32{a, b} {
		server.must(server.conn.End(id, nil, nil))
		server.conn.Release(id)
		if done := server.conn.Done(); done {
			t.Error("done before all was sent")
		}
	}
	settle(client, server)
	if !server.conn.Done() {
		t.Error("not done")
	}
}

func TestConn_Refused(t *testing.T) {
	client, server := newPair(t, ttstream.Config{}, ttstream.Config{Streams: 1})
	if room := client.conn.Room(); room != limits.StreamsPerConnection {
		t.Errorf("room for %d streams before the server has said anything", room)
	}
	a, b := client.open("a"), client.open("b")
	settle(client, server)
	client.want(`reset 2 fulmar-executed=no failure 12011 "too many streams" not executed, full`)
	if _, err := client.conn.Open(ttstream.Request{Method: "c"}); !errors.Is(err, ttstream.ErrStreams) || client.conn.Room() != 0 || client.conn.PeerStreams() != 1 {
		t.Errorf("more streams than the server takes: %v", err)
	}
	client.conn.Release(a)
	client.conn.Release(b)
	server.conn.Shutdown(true)
	client.open("c")
	settle(client, server)
	client.want("go-away 0\n" + `reset 3 fulmar-executed=no failure 12006 "server is going away" not executed`)
}
