//lint:file-ignore SA1019 The sides of net/http dial and listen, those of x/net speak over what they are given.

package http2_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	oracle "golang.org/x/net/http2"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// carrier runs a Conn over a net.Conn, as simply as can be: one goroutine reads,
// another writes, a lock keeps them apart. now stands still, as far as the Conn knows.
type carrier struct {
	*side
	lock   sync.Mutex
	change *sync.Cond
	socket net.Conn
	closed bool
	ended  sync.WaitGroup
	// unsent are bodies that Data did not take all of.
	unsent map[uint32]*unsent
}

type unsent struct {
	rest     []byte
	trailers []http2.Field
}

func carry(t testing.TB, config http2.Config, socket net.Conn, event func(*carrier, http2.Event)) *carrier {
	c := &carrier{socket: socket, unsent: map[uint32]*unsent{}}
	c.change = sync.NewCond(&c.lock)
	c.side = newSide(t, config, func(e http2.Event) { event(c, e) })
	c.ended.Go(c.readAll)
	c.ended.Go(c.writeAll)
	return c
}

func (c *carrier) readAll() {
	b := make([]byte, 8<<10)
	for {
		n, err := c.socket.Read(b)
		c.lock.Lock()
		c.arrive(b[:n])
		c.resume()
		over := err != nil || c.err != nil
		c.closed = c.closed || over
		c.change.Broadcast()
		c.lock.Unlock()
		if over {
			return
		}
	}
}

func (c *carrier) writeAll() {
	defer c.socket.Close()
	for {
		c.lock.Lock()
		for c.conn.Unsent() == 0 && !c.closed && !c.conn.Done() {
			c.change.Wait()
		}
		b := c.take()
		if c.congested {
			c.read()
		}
		c.resume()
		over := len(b) == 0 && (c.closed || c.conn.Done())
		c.lock.Unlock()
		if _, err := c.socket.Write(b); err != nil || over {
			return
		}
	}
}

// resume goes on with bodies that have room now. The lock is held.
func (c *carrier) resume() {
	for id, _, ok := c.conn.Writable(); ok; id, _, ok = c.conn.Writable() {
		c.body(id)
	}
	c.change.Broadcast()
}

// respond sends a body, as far as there is room, and then trailers. With none the body
// ends the stream.
func (c *carrier) respond(id uint32, body []byte, trailers ...http2.Field) {
	c.unsent[id] = &unsent{rest: body, trailers: trailers}
	c.body(id)
	c.change.Broadcast()
}

func (c *carrier) body(id uint32) {
	u := c.unsent[id]
	if u == nil {
		return
	}
	n, err := c.conn.Data(id, u.rest, len(u.trailers) == 0)
	u.rest = u.rest[n:]
	if err != nil || len(u.rest) == 0 {
		delete(c.unsent, id)
	}
	if err == nil && len(u.rest) == 0 && len(u.trailers) > 0 {
		err = c.conn.Headers(id, u.trailers, true)
	}
	if err != nil && !errors.Is(err, http2.ErrStreamEnded) {
		c.t.Errorf("stream %d: %v", id, err)
	}
}

func (c *carrier) wait() { c.ended.Wait() }

// echoServer answers requests with their bodies and a trailer: /echo when the body has
// ended, /early at once and before it, /reset with a reset, /silent never.
type echoServer struct {
	bodies map[uint32]*bytes.Buffer
	paths  map[uint32]string
	resets int
}

func (s *echoServer) on(c *carrier, e http2.Event) {
	switch e.Kind {
	case http2.EventHeaders:
		if !e.Trailers {
			s.bodies[e.Stream] = new(bytes.Buffer)
			for _, f := range e.Fields {
				if f.Name == ":path" {
					s.paths[e.Stream] = f.Value
				}
			}
			s.begin(c, e.Stream)
		}
	case http2.EventData:
		if b := s.bodies[e.Stream]; b != nil {
			b.Write(e.Data)
		}
		c.conn.Consume(e.Stream, len(e.Data), c.now)
	case http2.EventReset:
		s.resets++
		c.conn.Release(e.Stream)
		delete(s.bodies, e.Stream)
		delete(c.unsent, e.Stream)
		return
	}
	if e.End && s.paths[e.Stream] == "/echo" {
		if err := c.conn.Headers(e.Stream, []http2.Field{{Name: ":status", Value: "200"}, {Name: "trailer", Value: "length"}}, false); err != nil {
			c.t.Error(err)
		}
		b := s.bodies[e.Stream].Bytes()
		c.respond(e.Stream, b, http2.Field{Name: "length", Value: fmt.Sprint(len(b))})
	}
}

func (s *echoServer) begin(c *carrier, id uint32) {
	switch s.paths[id] {
	case "/reset":
		c.conn.Reset(id, http2.EnhanceYourCalm)
		c.conn.Release(id)
	case "/early":
		if err := c.conn.Headers(id, []http2.Field{{Name: ":status", Value: "404"}}, true); err != nil {
			c.t.Error(err)
		}
		c.conn.Release(id)
	}
}

// TestServer_TransportOfXNet has the client of golang.org/x/net talk to a server of
// ours: bodies of all sizes, many at a time, trailers, resets of both, and a stop.
func TestServer_TransportOfXNet(t *testing.T) {
	theirs, ours := net.Pipe()
	server := &echoServer{bodies: map[uint32]*bytes.Buffer{}, paths: map[uint32]string{}}
	c := carry(t, http2.Config{}, ours, server.on)
	transport := &oracle.Transport{AllowHTTP: true, DialTLS: func(string, string, *tls.Config) (net.Conn, error) { return theirs, nil }}
	client := &http.Client{Transport: transport}
	var calls sync.WaitGroup
	for i := range 60 {
		calls.Go(func() {
			body := strings.Repeat(fmt.Sprint(i), []int{0, 1, 1000, 100_000, 700_000}[i%5])
			if err := echoCall(client, body); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	calls.Wait()
	response, err := client.Post("http://server/early", "text/plain", neverEnding{})
	if err != nil || response.StatusCode != 404 {
		t.Fatalf("answered early: %v, %v", response, err)
	}
	response.Body.Close()
	var reset oracle.StreamError
	if _, err := client.Get("http://server/reset"); !errors.As(err, &reset) || reset.Code != oracle.ErrCodeEnhanceYourCalm {
		t.Fatalf("reset by the server: %v", err)
	}
	c.lock.Lock()
	for id := range server.bodies {
		c.conn.Release(id)
	}
	c.conn.Shutdown(c.now)
	c.change.Broadcast()
	c.lock.Unlock()
	c.wait()
	if c.err != nil || c.conn.Streams() != 0 {
		t.Fatalf("%d streams are left: %v", c.conn.Streams(), c.err)
	}
	transport.CloseIdleConnections()
}

// neverEnding is a body that has more and more.
type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return min(len(p), 100), nil }

func echoCall(client *http.Client, body string) error {
	response, err := client.Post("http://server/echo", "text/plain", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case string(got) != body:
		return fmt.Errorf("%d bytes came back of %d", len(got), len(body))
	case response.Trailer.Get("length") != fmt.Sprint(len(body)):
		return fmt.Errorf("trailers %v", response.Trailer)
	}
	return nil
}

// reply is what a client of ours gets for a call.
type reply struct {
	body     bytes.Buffer
	status   string
	trailers string
	reset    *http2.ErrorCode
	ended    bool
}

// TestClient_ServerOfXNet has a client of ours talk to the server of golang.org/x/net.
func TestClient_ServerOfXNet(t *testing.T) {
	theirs, ours := net.Pipe()
	var serving sync.WaitGroup
	stop := &http.Server{}
	settings := &oracle.Server{MaxConcurrentStreams: 20}
	if err := oracle.ConfigureServer(stop, settings); err != nil {
		t.Fatal(err)
	}
	serving.Go(func() {
		settings.ServeConn(theirs, &oracle.ServeConnOpts{BaseConfig: stop, Handler: http.HandlerFunc(xnetHandler)})
	})
	replies := map[uint32]*reply{}
	settled := false
	c := carry(t, http2.Config{Client: true}, ours, func(c *carrier, e http2.Event) {
		settled = settled || e.Kind == http2.EventSettings
		onReply(c, replies[e.Stream], e)
	})
	sizes := []int{0, 1, 1000, 100_000, 700_000}
	wanted := map[uint32]string{}
	c.lock.Lock()
	for !settled && !c.closed {
		c.change.Wait() // Streams that the server has not allowed yet may be refused.
	}
	for i := range 60 {
		body := strings.Repeat(fmt.Sprint(i), sizes[i%5])
		wanted[openCall(t, c, replies, "/echo", body)] = body
	}
	reset := openCall(t, c, replies, "/abort", "")
	early := openCall(t, c, replies, "/missing", strings.Repeat("x", 100_000))
	for id, r := range replies {
		for !r.ended && !c.closed {
			c.change.Wait()
		}
		if body, ok := wanted[id]; ok && (r.status != "200" || r.body.String() != body || r.trailers != fmt.Sprint(len(body))) {
			t.Errorf("stream %d: status %s, %d bytes of %d, trailers %q", id, r.status, r.body.Len(), len(body), r.trailers)
		}
		c.conn.Release(id)
	}
	if r := replies[reset]; r.reset == nil || *r.reset != http2.InternalError {
		t.Errorf("a handler that aborts: %+v", r)
	}
	if r := replies[early]; r.status != "404" {
		t.Errorf("an answer before the request has ended: %+v", r)
	}
	c.conn.Shutdown(c.now)
	c.change.Broadcast()
	c.lock.Unlock()
	c.wait()
	serving.Wait()
	if c.err != nil || c.conn.Streams() != 0 {
		t.Fatalf("%d streams are left: %v", c.conn.Streams(), c.err)
	}
}

// xnetHandler echoes, with the length as a trailer.
func xnetHandler(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/abort":
		panic(http.ErrAbortHandler)
	case "/echo":
		w.Header().Set("Trailer", "length")
		// Flow control of its own: read all first, as it answers in full.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.WriteHeader(200)
		_, _ = w.Write(body)
		w.Header().Set("length", fmt.Sprint(len(body)))
	default:
		http.NotFound(w, r)
	}
}

// openCall begins a call, when there is room. The lock is held.
func openCall(t *testing.T, c *carrier, replies map[uint32]*reply, path, body string) uint32 {
	t.Helper()
	for !c.conn.CanOpen() && !c.closed {
		c.change.Wait()
	}
	id, err := c.conn.Open([]http2.Field{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "server"},
	}, body == "", c.now)
	if err != nil {
		t.Fatal(err)
	}
	replies[id] = new(reply)
	if body != "" {
		c.respond(id, []byte(body))
	}
	c.change.Broadcast()
	return id
}

func onReply(c *carrier, r *reply, e http2.Event) {
	switch e.Kind {
	case http2.EventHeaders:
		for _, f := range e.Fields {
			switch f.Name {
			case ":status":
				r.status = f.Value
			case "length":
				r.trailers = f.Value
			}
		}
	case http2.EventData:
		r.body.Write(e.Data)
		c.conn.Consume(e.Stream, len(e.Data), c.now)
	case http2.EventReset:
		r.reset, r.ended = &e.Code, true
	}
	if e.End {
		r.ended = true
	}
	c.change.Broadcast()
}
