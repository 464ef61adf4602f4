package fulmar_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// http2Peer is a client in HTTP/2 that does what a test says, and nothing else.
type http2Peer struct {
	s       *simulation
	conn    net.Conn
	http2   *http2.Conn
	pool    *linkbuf.Pool
	arrived []byte
	// status and data are of all streams, by stream.
	status map[uint32]map[string]string
	data   map[uint32][]byte
	resets map[uint32]http2.ErrorCode
	goAway bool
}

func (s *simulation) http2Peer(config http2.Config) *http2Peer {
	config.Client = true
	p := &http2Peer{s: s, conn: s.connect(), pool: linkbuf.NewPool(), status: map[uint32]map[string]string{}, data: map[uint32][]byte{}, resets: map[uint32]http2.ErrorCode{}}
	p.http2 = http2.NewConn(config, p.pool, 0)
	s.t.Cleanup(p.close)
	return p
}

func (p *http2Peer) close() {
	p.http2.Close()
	_ = p.conn.Close()
}

// send begins a stream with a body, which may go on.
func (p *http2Peer) send(body []byte, end bool, fields ...http2.Field) uint32 {
	p.s.t.Helper()
	all := map[string]string{":method": "POST", ":scheme": "http", ":path": "/Echo/nothing", "te": "trailers", "content-type": "application/grpc+thrift"}
	for _, field := range fields {
		all[field.Name] = field.Value
	}
	list := []http2.Field{}
	for _, name := range []string{":method", ":scheme", ":path"} {
		list = append(list, http2.Field{Name: name, Value: all[name]})
		delete(all, name)
	}
	for name, value := range all {
		list = append(list, http2.Field{Name: name, Value: value})
	}
	id, err := p.http2.Open(list, false, 0)
	if err != nil {
		p.s.t.Fatal(err)
	}
	if _, err := p.http2.Data(id, body, end); err != nil {
		p.s.t.Fatal(err)
	}
	return id
}

// flush writes what is to be sent.
func (p *http2Peer) flush() {
	full := p.http2.Swap(linkbuf.New(p.pool))
	for _, piece := range full.Slices(nil) {
		if _, err := p.conn.Write(piece); err != nil {
			break // Reading says why.
		}
	}
	full.Release()
}

// listen reads for a while. It reports whether the server has closed the connection.
func (p *http2Peer) listen(d time.Duration) (closed bool) {
	p.flush()
	_ = p.conn.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 64<<10)
	for {
		n, err := p.conn.Read(buf)
		p.arrived = append(p.arrived, buf[:n]...)
		for {
			event, used, _, failed := p.http2.Next(p.arrived, 0)
			if failed != nil {
				p.s.t.Fatalf("what the server sends is no HTTP/2: %v", failed)
			}
			p.take(&event)
			p.arrived = p.arrived[used:]
			if used == 0 && event.Kind == http2.EventNone {
				break
			}
		}
		p.flush()
		if err != nil {
			return !strings.Contains(err.Error(), "timeout")
		}
	}
}

func (p *http2Peer) take(event *http2.Event) {
	switch event.Kind {
	case http2.EventHeaders:
		if p.status[event.Stream] == nil {
			p.status[event.Stream] = map[string]string{}
		}
		for _, field := range event.Fields {
			p.status[event.Stream][field.Name] = field.Value
		}
	case http2.EventData:
		p.data[event.Stream] = append(p.data[event.Stream], event.Data...)
	case http2.EventReset:
		p.resets[event.Stream] = event.Code
	case http2.EventGoAway:
		p.goAway = true
	}
}

// grpcMessage returns a message of gRPC.
func grpcMessage(body []byte, compressed bool) []byte {
	b := make([]byte, grpc.PrefixSize, grpc.PrefixSize+len(body))
	grpc.PutPrefix(b, len(body), compressed)
	return append(b, body...)
}

func packed(body []byte) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(body)
	_ = writer.Close()
	return out.Bytes()
}

// TestGRPC_AnswersWhatCannotBeServed sends requests that break a rule, each on the same
// connection, which must go on: the last call is served.
func TestGRPC_AnswersWhatCannotBeServed(t *testing.T) {
	nothing := []byte{0}
	field := func(name, value string) http2.Field { return http2.Field{Name: name, Value: value} }
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
	cases := map[string]struct {
		body   []byte
		fields []http2.Field
		http   string
		status string
	}{
		"a method of HTTP":        {grpcMessage(nothing, false), []http2.Field{field(":method", "GET")}, "405", ""},
		"no gRPC":                 {grpcMessage(nothing, false), []http2.Field{field("content-type", "text/html")}, "415", ""},
		"gRPC for browsers":       {grpcMessage(nothing, false), []http2.Field{field("content-type", "application/grpc-web")}, "415", ""},
		"unknown payload":         {grpcMessage(nothing, false), []http2.Field{field("content-type", "application/grpc+json")}, "200", "12"},
		"unknown encoding":        {grpcMessage(nothing, false), []http2.Field{field("grpc-encoding", "zstd")}, "200", "12"},
		"unknown service":         {grpcMessage(nothing, false), []http2.Field{field(":path", "/Other/nothing")}, "200", "12"},
		"unknown method":          {grpcMessage(nothing, false), []http2.Field{field(":path", "/Echo/other")}, "200", "12"},
		"another case":            {grpcMessage(nothing, false), []http2.Field{field(":path", "/echo/nothing")}, "200", "12"},
		"a slash more":            {grpcMessage(nothing, false), []http2.Field{field(":path", "//Echo/nothing")}, "200", "12"},
		"qualified name":          {grpcMessage(nothing, false), []http2.Field{field(":path", "/Other/Echo:nothing")}, "200", "12"},
		"no time":                 {grpcMessage(nothing, false), []http2.Field{field("grpc-timeout", "1")}, "200", "3"},
		"too many values":         {grpcMessage(nothing, false), []http2.Field{field("x-bin", strings.Repeat("AA,", limits.HeaderPairs)+"AA")}, "200", "8"},
		"no base64":               {grpcMessage(nothing, false), []http2.Field{field("x-bin", "%")}, "200", "13"},
		"half a message":          {grpcMessage([]byte("12345"), false)[:7], nil, "200", "13"},
		"half a prefix":           {[]byte{0, 0}, nil, "200", "13"},
		"two messages":            {append(grpcMessage(nothing, false), grpcMessage(nothing, false)...), nil, "200", "12"},
		"no message":              {nil, nil, "200", "12"},
		"unknown flags":           {[]byte{2, 0, 0, 0, 0}, nil, "200", "13"},
		"compressed without name": {grpcMessage(packed(nothing), true), nil, "200", "13"},
		"no gzip":                 {grpcMessage(nothing, true), []http2.Field{field("grpc-encoding", "gzip")}, "200", "13"},
		"a bomb":                  {grpcMessage(packed(make([]byte, 1<<20)), true), []http2.Field{field("grpc-encoding", "gzip")}, "200", "8"},
		"no Thrift":               {grpcMessage([]byte{99}, false), nil, "200", "3"},
	}
	config := fulmar.ServerConfig{MaxMessageBytes: 10_000}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		for name, test := range cases {
			id := peer.send(test.body, true, test.fields...)
			peer.listen(time.Second)
			if got := peer.status[id]; got[":status"] != test.http || got["grpc-status"] != test.status {
				t.Errorf("%s: got %v, want HTTP %s and status %q", name, got, test.http, test.status)
			} else if test.status != "" && got["fulmar-executed"] != "no" {
				t.Errorf("%s: the answer does not say that the call was not executed: %v", name, got)
			}
		}
		// The prefix alone is enough to refuse; the peer need not send what it says.
		long := make([]byte, grpc.PrefixSize)
		grpc.PutPrefix(long, 10_001, false)
		id := peer.send(long, false)
		peer.listen(time.Second)
		if got := peer.status[id]["grpc-status"]; got != "8" {
			t.Errorf("message that is too long: status %q", got)
		}
		for _, body := range [][]byte{grpcMessage(nothing, false), grpcMessage(packed(nothing), true)} {
			id = peer.send(body, true, field("grpc-encoding", "gzip"))
			peer.listen(time.Second)
			if got := peer.status[id]["grpc-status"]; got != "0" || !bytes.Equal(peer.data[id], grpcMessage(nothing, false)) {
				t.Errorf("a good call: status %q, %x", got, peer.data[id])
			}
		}
	})
}

// TestGRPC_SplitsBinaryHeaders: somebody on the way may have joined the values of a header.
func TestGRPC_SplitsBinaryHeaders(t *testing.T) {
	var got []string
	stub := &testservice.Stub{OnNothing: func(ctx context.Context) error {
		call, _ := fulmar.CallFrom(ctx)
		for key, value := range call.Metadata().AllTransient() {
			if key == "x-bin" {
				got = append(got, value)
			}
		}
		return nil
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		id := peer.send(grpcMessage([]byte{0}, false), true, http2.Field{Name: "x-bin", Value: "AQ==,AgM,BA"})
		peer.listen(time.Second)
		if want := []string{"\x01", "\x02\x03", "\x04"}; peer.status[id]["grpc-status"] != "0" || !slices.Equal(got, want) {
			t.Errorf("status %q, values %q, want %q", peer.status[id]["grpc-status"], got, want)
		}
	})
}

// TestGRPC_HeadersOfCalls: what a call has besides metadata is in front of all of it, and nowhere
// else; headers that are empty are there, and metadata of Kitex that is empty is not.
func TestGRPC_HeadersOfCalls(t *testing.T) {
	var got []string
	var transient int
	stub := &testservice.Stub{OnNothing: func(ctx context.Context) error {
		call, _ := fulmar.CallFrom(ctx)
		got, transient = pairsOf(call.Metadata()), 0
		for range call.Metadata().AllTransient() {
			transient++
		}
		return nil
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		for _, agent := range []string{"one", "one", "other"} {
			id := peer.send(grpcMessage([]byte{0}, false), true, http2.Field{Name: "user-agent", Value: agent}, http2.Field{Name: "grpc-accept-encoding", Value: "gzip"}, http2.Field{Name: "empty"}, http2.Field{Name: "empty-bin"},
				http2.Field{Name: "rpc-persist-a"}, http2.Field{Name: "rpc-transit-a"}, http2.Field{Name: "x", Value: "1"})
			peer.listen(time.Second)
			slices.Sort(got[min(3, len(got)):]) // fields are sent in any order
			want := []string{"content-type=application/grpc+thrift", "user-agent=" + agent, "grpc-accept-encoding=gzip", "RPC_TRANSIT_empty-bin=", "RPC_TRANSIT_empty=", "RPC_TRANSIT_x=1"}
			if peer.status[id]["grpc-status"] != "0" || !slices.Equal(got, want) || transient != 3 {
				t.Errorf("status %q, %q with %d transient ones, want %q", peer.status[id]["grpc-status"], got, transient, want)
			}
		}
	})
}

// TestGRPC_PeersThatAreSlow has peers that stop in the middle of something.
func TestGRPC_PeersThatAreSlow(t *testing.T) {
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
	config := fulmar.ServerConfig{FrameTimeout: 2 * time.Second, IdleTimeout: time.Minute, WriteStallTimeout: 5 * time.Second}
	t.Run("request without an end", func(t *testing.T) {
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
			peer := s.http2Peer(http2.Config{})
			slow := peer.send([]byte{0, 0}, false)
			if peer.listen(5*time.Second) || peer.status[slow]["grpc-status"] != "4" || peer.status[slow][wire.Executed] != "no" {
				t.Errorf("a request that does not end: %v, reset %v", peer.status[slow], peer.resets)
			}
			good := peer.send(grpcMessage([]byte{0}, false), true)
			peer.listen(time.Second)
			if peer.status[good]["grpc-status"] != "0" {
				t.Errorf("the next call: %v", peer.status[good])
			}
		})
	})
	t.Run("half a frame", func(t *testing.T) {
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
			peer := s.http2Peer(http2.Config{})
			peer.listen(time.Second)
			if _, err := peer.conn.Write([]byte{0, 0, 9, 0}); err != nil {
				t.Fatal(err)
			}
			if !peer.listen(10 * time.Second) {
				t.Error("the connection is still open")
			}
		})
	})
	t.Run("nothing to do", func(t *testing.T) {
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
			peer := s.http2Peer(http2.Config{})
			peer.send(grpcMessage([]byte{0}, false), true)
			if peer.listen(50*time.Second) || peer.goAway {
				t.Error("closed too early")
			}
			if !peer.listen(20*time.Second) || !peer.goAway {
				t.Errorf("an idle connection: GOAWAY %v", peer.goAway)
			}
		})
	})
	t.Run("only half of the preface", func(t *testing.T) {
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
			conn := s.connect()
			defer func() { _ = conn.Close() }()
			_, _ = conn.Write([]byte("PRI * HTTP/2.0"))
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			for {
				if _, err := conn.Read(make([]byte, 1000)); err != nil {
					if strings.Contains(err.Error(), "timeout") {
						t.Error("the connection is still open")
					}
					return
				}
			}
		})
	})
}

// TestGRPC_AnswersWithoutAWindow has a peer that asks for answers and lets nothing of them
// come: their memory is given back in the end, and the streams are.
func TestGRPC_AnswersWithoutAWindow(t *testing.T) {
	stub := &testservice.Stub{OnVersion: func(context.Context) (string, error) { return strings.Repeat("x", 200_000), nil }}
	config := fulmar.ServerConfig{WriteStallTimeout: 5 * time.Second}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		id := peer.send(grpcMessage([]byte{0}, false), true, http2.Field{Name: ":path", Value: "/Echo/version"})
		peer.listen(3 * time.Second)
		if held := s.server.Stats().BufferedBytes; held < 200_000 {
			t.Errorf("while the answer waits, the budget counts %d bytes", held)
		}
		peer.listen(4 * time.Second)
		if code, reset := peer.resets[id]; !reset || code != http2.Cancel {
			t.Errorf("an answer that nobody takes: %v", peer.resets)
		}
		if held := s.server.Stats().BufferedBytes; held != 0 {
			t.Errorf("behind its end, the budget counts %d bytes", held)
		}
	})
}

// TestGRPC_StopServesWhatIsOnItsWay stops a server while a call runs: the peer is told,
// the call is answered, and the connection ends behind it.
func TestGRPC_StopServesWhatIsOnItsWay(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	stub := &testservice.Stub{OnNothing: func(context.Context) error {
		close(entered)
		<-leave
		return nil
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		entered, leave = make(chan struct{}), make(chan struct{})
		peer := s.http2Peer(http2.Config{})
		id := peer.send(grpcMessage([]byte{0}, false), true)
		peer.flush()
		<-entered
		s.stop()
		synctest.Wait()
		if peer.listen(3*time.Second) || !peer.goAway {
			t.Errorf("while the call runs: GOAWAY %v", peer.goAway)
		}
		close(leave)
		if !peer.listen(3*time.Second) || peer.status[id]["grpc-status"] != "0" {
			t.Errorf("the call was answered with %v", peer.status[id])
		}
	})
}

// TestGRPC_OnlyFromTheFirstByte changes to HTTP/2 behind a call in Thrift, on which the
// connection ends; and a server that does not allow gRPC refuses it.
func TestGRPC_OnlyFromTheFirstByte(t *testing.T) {
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
	thrift := append([]byte{0x80, 1, 0, 1, 0, 0, 0, 7}, "nothing\x00\x00\x00\x01\x00"...)
	for name, test := range map[string]struct {
		protocols []fulmar.Protocol
		before    []byte
		served    bool
	}{
		"from the first byte": {nil, nil, true},
		"behind a call":       {nil, thrift, false},
		"not allowed":         {[]fulmar.Protocol{fulmar.Bare, fulmar.TTHeader}, nil, false},
		"nothing else":        {[]fulmar.Protocol{fulmar.GRPC}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			config := fulmar.ServerConfig{Protocols: test.protocols}
			simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
				peer := s.http2Peer(http2.Config{})
				if _, err := peer.conn.Write(test.before); err != nil {
					t.Fatal(err)
				}
				if len(test.before) > 0 {
					// Its answer is not looked at.
					if _, err := peer.conn.Read(make([]byte, 1000)); err != nil {
						t.Fatal(err)
					}
				}
				id := peer.send(grpcMessage([]byte{0}, false), true)
				closed := peer.listen(10 * time.Second)
				if served := peer.status[id]["grpc-status"] == "0"; served != test.served || closed == test.served {
					t.Errorf("served %v, closed %v", served, closed)
				}
			})
		})
	}
}

// TestGRPC_SlowUploadsThatGoOn has a peer that sends a request for longer than FrameTimeout,
// in writes that each end in the middle of a frame.
func TestGRPC_SlowUploadsThatGoOn(t *testing.T) {
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
	config := fulmar.ServerConfig{FrameTimeout: time.Second}
	simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, stub, func(s *simulation) {
		peer := s.http2Peer(http2.Config{})
		// The server's settings have come, and its window for the connection.
		peer.listen(time.Second)
		// A field that nobody knows fills the message.
		const length = 60_000
		body := append([]byte{11, 0, 99, 0, 0, byte(length >> 8), byte(length & 0xff)}, make([]byte, length+1)...)
		id := peer.send(grpcMessage(body, false), true)
		full := peer.http2.Swap(linkbuf.New(peer.pool))
		all := bytes.Join(full.Slices(nil), nil)
		full.Release()
		for len(all) > 0 {
			n := min(len(all), 7_600)
			if _, err := peer.conn.Write(all[:n]); err != nil {
				t.Fatal(err)
			}
			all = all[n:]
			if peer.listen(250 * time.Millisecond) {
				t.Fatalf("closed with %d bytes to go", len(all))
			}
		}
		peer.listen(time.Second)
		if got := peer.status[id]; got["grpc-status"] != "0" {
			t.Errorf("answered with %v, reset %v", got, peer.resets)
		}
	})
}
