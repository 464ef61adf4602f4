package proxied_test

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// recordings is where the bytes of Kitex are kept for the tests of the state machine.
// They are written with -update: Kitex puts its keys in any order, so they are never
// twice the same, but what they mean is.
const recordings = "../../../internal/wire/ttstream/testdata/kitex"

// wireEnd drives the state machine over a connection.
type wireEnd struct {
	t    *testing.T
	net  net.Conn
	conn *ttstream.Conn
	pool *linkbuf.Pool
	// input came and was not used, all is everything that came.
	input, all []byte
	lines      []string
}

func newWireEnd(t *testing.T, c net.Conn, config ttstream.Config) *wireEnd {
	t.Helper()
	pool := linkbuf.NewPool()
	e := &wireEnd{t: t, net: c, pool: pool, conn: ttstream.NewConn(config, pool, 0)}
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.conn.Close()
		_ = c.Close()
	})
	return e
}

// flush sends what is to be sent.
func (e *wireEnd) flush() {
	e.t.Helper()
	full := e.conn.Swap(linkbuf.New(e.pool))
	defer full.Release()
	for _, piece := range full.Slices(nil) {
		if _, err := e.net.Write(piece); err != nil {
			e.t.Fatal(err)
		}
	}
}

// next returns the next event; false at the end of the connection.
func (e *wireEnd) next() (ttstream.Event, bool) {
	e.t.Helper()
	e.flush()
	for {
		event, used, _, err := e.conn.Next(e.input, 0)
		if err != nil {
			e.t.Fatal(err)
		}
		if used > 0 {
			e.input = e.input[used:]
		}
		if event.Kind != ttstream.EventNone {
			e.lines = append(e.lines, line(event))
			if event.Kind == ttstream.EventData {
				e.conn.Consume(event.Stream, len(event.Data))
			}
			return event, true
		}
		if used > 0 {
			continue
		}
		b := make([]byte, 4096)
		n, err := e.net.Read(b)
		e.input, e.all = append(e.input, b[:n]...), append(e.all, b[:n]...)
		if err == io.EOF {
			return event, false
		}
		if err != nil {
			e.t.Fatalf("%v, after\n%s", err, strings.Join(e.lines, "\n"))
		}
	}
}

// until reads until a stream has an event of a kind.
func (e *wireEnd) until(id int32, kind ttstream.EventKind) ttstream.Event {
	e.t.Helper()
	for {
		event, ok := e.next()
		if !ok {
			e.t.Fatalf("the connection ended after\n%s", strings.Join(e.lines, "\n"))
		}
		if event.Stream == id && event.Kind == kind {
			return event
		}
	}
}

// line says what an event is, keys in order.
func line(e ttstream.Event) string {
	var keys []string
	for key, value := range e.Info.Strings() {
		keys = append(keys, fmt.Sprintf("%s=%s", key, value))
	}
	slices.Sort(keys)
	return fmt.Sprintf("kind %d stream %d method %q keys %q data %x failure %d %q business %+v path %q problem %v",
		e.Kind, e.Stream, e.Method, keys, e.Data, e.Failure.Code, e.Failure.Message, e.Business, e.Path, e.Problem)
}

// record keeps what Kitex sent, and compares what it meant.
func (e *wireEnd) record(name string) {
	e.t.Helper()
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.MkdirAll(recordings, 0o755); err != nil {
			e.t.Fatal(err)
		}
		if err := os.WriteFile(recordings+"/"+name+".hex", hexLines(e.all), 0o644); err != nil {
			e.t.Fatal(err)
		}
	}
	testkit.Golden(e.t, "testdata/streams-"+name+".txt", []byte(strings.Join(e.lines, "\n")+"\n"))
}

// hexLines writes bytes as testkit.Hex reads them.
func hexLines(b []byte) (text []byte) {
	for piece := range slices.Chunk(b, 32) {
		text = fmt.Appendf(text, "% x\n", piece)
	}
	return text
}

func (e *wireEnd) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *wireEnd) send(id int32, text string) {
	e.t.Helper()
	if sent, err := e.conn.Send(id, textStruct(1, text)); err != nil || !sent {
		e.t.Fatalf("%q was not sent: %v", text, err)
	}
}

// TestStreams_KitexServer calls each method of a server of Kitex.
func TestStreams_KitexServer(t *testing.T) {
	c, err := net.Dial("tcp", startServer(t, "streams-server", "thrift"))
	if err != nil {
		t.Fatal(err)
	}
	e := newWireEnd(t, c, ttstream.Config{Client: true})
	for _, each := range []struct {
		method string
		send   []string
	}{
		{"chat", []string{"a", "b"}}, {"list", []string{"3"}}, {"collect", []string{"a", "b"}}, {"fail", nil}, {"business", nil}, {"hang", nil}, {"seen", nil},
	} {
		id, err := e.conn.Open(ttstream.Request{Method: each.method, Timeout: 1e10, Pairs: []ttheader.Pair{
			{Key: "isn", Value: "Streams"}, {Key: "RPC_PERSIST_TRACE", Value: "1"},
		}})
		e.must(err)
		for _, text := range each.send {
			e.send(id, text)
		}
		if each.method == "hang" {
			e.until(id, ttstream.EventHeader)
			e.conn.Reset(id, ttstream.Failure{Code: ttstream.CodeCanceled, Message: "enough"}, ttstream.AppendPath("front", "mid"))
		} else {
			e.must(e.conn.End(id, nil, nil))
			e.until(id, ttstream.EventEnd)
		}
		e.conn.Release(id)
	}
	if e.conn.Ours() || e.conn.Streams() != 0 {
		t.Errorf("ours: %v, %d streams left", e.conn.Ours(), e.conn.Streams())
	}
	e.record("server")
}

// TestStreams_KitexClient serves a client of Kitex, as its own server would.
func TestStreams_KitexClient(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	output := start(t, "streams-client", listener.Addr().String(), "ttheader", "thrift")
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	e := newWireEnd(t, c, ttstream.Config{})
	methods, texts := map[int32]string{}, map[int32][]string{}
	for hung := false; !hung; {
		event, ok := e.next()
		if !ok {
			t.Fatalf("the connection ended after\n%s", strings.Join(e.lines, "\n"))
		}
		id := event.Stream
		switch event.Kind {
		case ttstream.EventOpen:
			methods[id] = string(event.Method)
			trace, _ := event.Info.String("RPC_PERSIST_TRACE")
			e.must(e.conn.Header(id, []ttheader.Pair{{Key: "trace", Value: string(trace)}}))
		case ttstream.EventData:
			text := string(event.Data[7 : len(event.Data)-1])
			texts[id] = append(texts[id], text)
			if methods[id] == "chat" {
				e.send(id, "you said "+text)
			}
		case ttstream.EventEnd:
			e.finish(id, methods[id], texts[id])
			e.conn.Release(id)
		case ttstream.EventReset:
			hung = true
			e.conn.Release(id)
		}
	}
	if e.conn.Streams() != 0 {
		t.Errorf("%d streams left", e.conn.Streams())
	}
	text, err := io.ReadAll(output)
	if err != nil {
		t.Fatal(err)
	}
	e.lines = append(e.lines, strings.TrimSpace(string(text)))
	e.record("client")
}

// finish ends a stream as the handler of a method does.
func (e *wireEnd) finish(id int32, method string, texts []string) {
	e.t.Helper()
	switch method {
	case "chat":
		e.must(e.conn.End(id, []ttheader.Pair{{Key: "count", Value: strconv.Itoa(len(texts))}}, nil))
		return
	case "list":
		count, err := strconv.Atoi(texts[0])
		e.must(err)
		for i := range count {
			e.send(id, strconv.Itoa(i))
		}
	case "collect":
		e.send(id, strings.Join(texts, "+"))
	case "fail":
		e.must(e.conn.End(id, nil, &ttstream.Failure{Code: 6, Message: "no such stream"}))
		return
	case "business":
		e.must(e.conn.End(id, []ttheader.Pair{
			{Key: "biz-status", Value: "1001"}, {Key: "biz-message", Value: "not today"}, {Key: "biz-extra", Value: `{"left":"3"}`},
		}, nil))
		return
	}
	e.must(e.conn.End(id, nil, nil))
}
