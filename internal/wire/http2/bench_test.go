package http2_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// exchange is the bytes of a call as gRPC makes it, of which only the stream's id
// changes: HEADERS and DATA, answered by HEADERS, DATA and HEADERS.
type exchange struct {
	request, response []byte
	requestFields     []http2.Field
	responseFields    []http2.Field
	trailers          []http2.Field
	message           []byte
}

func newExchange() *exchange {
	x := &exchange{
		requestFields: []http2.Field{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/shop.Orders/Place"},
			{Name: ":authority", Value: "orders.shop:8888"}, {Name: "content-type", Value: "application/grpc"},
			{Name: "user-agent", Value: "fulmar/0.1"}, {Name: "te", Value: "trailers"}, {Name: "grpc-timeout", Value: "5S"},
		},
		responseFields: []http2.Field{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}},
		trailers:       []http2.Field{{Name: "grpc-status", Value: "0"}},
		message:        make([]byte, 5+128),
	}
	request, response := http2.NewHeaderWriter(), http2.NewHeaderWriter()
	for range 2 { // The second time all fields are in the table.
		x.request = frame(http2.FrameHeaders, http2.FlagEndHeaders, 1, request.Write(x.requestFields)...)
		x.request = append(x.request, frame(http2.FrameData, http2.FlagEndStream, 1, x.message...)...)
		x.response = frame(http2.FrameHeaders, http2.FlagEndHeaders, 1, response.Write(x.responseFields)...)
		x.response = append(x.response, frame(http2.FrameData, 0, 1, x.message...)...)
		x.response = append(x.response, frame(http2.FrameHeaders, http2.FlagEndHeaders|http2.FlagEndStream, 1, response.Write(x.trailers)...)...)
	}
	return x
}

// setID writes the id of a stream into all frames.
func setID(b []byte, id uint32) {
	for len(b) > 0 {
		binary.BigEndian.PutUint32(b[5:], id)
		b = b[http2.FrameHeaderSize+int(binary.BigEndian.Uint32(b)>>8):]
	}
}

// driver is a Conn without a peer.
type driver struct {
	t     testing.TB
	conn  *http2.Conn
	spare *linkbuf.Buffer
	now   http2.Nanoseconds
	// update is a WINDOW_UPDATE, whose bytes are used again.
	update []byte
}

func newDriver(t testing.TB, client bool) *driver {
	pool := linkbuf.NewPool()
	d := &driver{t: t, conn: http2.NewConn(http2.Config{Client: client, Streams: -1}, pool, 0), spare: linkbuf.New(pool)}
	t.Cleanup(d.conn.Close)
	if !client {
		d.read([]byte(http2.Preface))
	}
	// As much as a peer can allow at once, and more whenever it was used.
	d.read(frame(http2.FrameSettings, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff, 0, 3, 0x7f, 0xff, 0xff, 0xff))
	d.read(frame(http2.FrameSettings, http2.FlagAck, 0))
	d.flush()
	return d
}

func (d *driver) read(b []byte) {
	for {
		event, used, _, err := d.conn.Next(b, d.now)
		if err != nil {
			d.t.Fatal(err)
		}
		b = b[used:]
		switch {
		case event.Kind == http2.EventNone && used == 0:
			return
		case event.Kind == http2.EventData:
			d.conn.Consume(event.Stream, len(event.Data), d.now)
		}
	}
}

// flush is the write.
func (d *driver) flush() {
	full := d.conn.Swap(d.spare)
	full.Release()
	d.spare = full
}

// credit opens the connection's window again.
func (d *driver) credit(x *exchange, calls int) {
	if d.update == nil {
		d.update = frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 0)
	}
	binary.BigEndian.PutUint32(d.update[http2.FrameHeaderSize:], uint32(calls*len(x.message)))
	d.read(d.update)
}

// server runs calls at a time through a server, which answers when all have arrived.
func (x *exchange) server(d *driver, first uint32, calls int) (next uint32) {
	id := first
	for range calls {
		setID(x.request, id)
		d.read(x.request)
		id += 2
	}
	for answered := first; answered < id; answered += 2 {
		err := d.conn.Headers(answered, x.responseFields, false)
		if err == nil {
			_, err = d.conn.Data(answered, x.message, false)
		}
		if err == nil {
			err = d.conn.Headers(answered, x.trailers, true)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		d.conn.Release(answered)
	}
	d.flush()
	return id
}

// client runs calls at a time through a client.
func (x *exchange) client(d *driver, calls int) {
	first, id := uint32(0), uint32(0)
	for i := range calls {
		var err error
		if id, err = d.conn.Open(x.requestFields, false, d.now); err == nil {
			_, err = d.conn.Data(id, x.message, true)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		if i == 0 {
			first = id
		}
	}
	d.flush()
	for ; first <= id; first += 2 {
		setID(x.response, first)
		d.read(x.response)
		d.conn.Release(first)
	}
}

// warm puts all fields into the tables of both directions.
func (x *exchange) warm(d *driver, client bool) (next uint32) {
	request, response := http2.NewHeaderWriter(), http2.NewHeaderWriter()
	if client {
		id, err := d.conn.Open(x.requestFields, true, d.now)
		if err != nil {
			d.t.Fatal(err)
		}
		d.read(frame(http2.FrameHeaders, http2.FlagEndHeaders, id, response.Write(x.responseFields)...))
		d.read(frame(http2.FrameHeaders, http2.FlagEndHeaders|http2.FlagEndStream, id, response.Write(x.trailers)...))
		d.conn.Release(id)
		return id + 2
	}
	d.read(frame(http2.FrameHeaders, http2.FlagEndHeaders|http2.FlagEndStream, 1, request.Write(x.requestFields)...))
	if err := d.conn.Headers(1, x.responseFields, true); err != nil {
		d.t.Fatal(err)
	}
	d.conn.Release(1)
	d.flush()
	return 3
}

// BenchmarkUnary is one call of gRPC at one side, all of its frames: alone, and with
// 100 that are under way together and leave in one write.
func BenchmarkUnary(b *testing.B) {
	for _, c := range []struct {
		name   string
		client bool
		calls  int
	}{{"server", false, 1}, {"server-100", false, 100}, {"client", true, 1}, {"client-100", true, 100}} {
		b.Run(c.name, func(b *testing.B) {
			x := newExchange()
			d := newDriver(b, c.client)
			next := x.warm(d, c.client)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += c.calls {
				if next > 1<<30 {
					b.Fatal("out of streams")
				}
				if c.client {
					x.client(d, c.calls)
				} else {
					next = x.server(d, next, c.calls)
				}
				if d.now += millisecond; i%(100*c.calls) == 0 {
					d.credit(x, 100*c.calls)
				}
			}
		})
	}
}

// TestConn_CallsDoNotAllocate: in the steady state nothing is allocated for the frames
// of a call, on either side.
func TestConn_CallsDoNotAllocate(t *testing.T) {
	x := newExchange()
	client, server := newDriver(t, true), newDriver(t, false)
	x.warm(client, true)
	next := x.warm(server, false)
	for range 100 {
		client.credit(x, 10)
		server.credit(x, 10)
		x.client(client, 10)
		next = x.server(server, next, 10)
	}
	if got := testing.AllocsPerRun(100, func() {
		x.client(client, 10)
		client.credit(x, 10)
	}); got >= 1 {
		t.Errorf("10 calls of a client allocate %.1f times", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		next = x.server(server, next, 10)
		server.credit(x, 10)
	}); got >= 1 {
		t.Errorf("10 calls of a server allocate %.1f times", got)
	}
}

// TestConn_IdleMemory measures what a server's connection keeps between calls: user
// space of an idle connection of HTTP/2 may be 12 KB in all (S5), poller included.
func TestConn_IdleMemory(t *testing.T) {
	const count, most = 200, 8 << 10
	x := newExchange()
	drivers := make([]*driver, count)
	before := heapBytes()
	for i := range drivers {
		drivers[i] = newDriver(t, false)
		next := x.warm(drivers[i], false)
		next = x.server(drivers[i], next, 10)
		x.server(drivers[i], next, 1)
	}
	if got := (heapBytes() - before) / count; got > most {
		t.Errorf("a connection keeps %d bytes, at most %d", got, most)
	} else {
		t.Logf("a connection keeps %d bytes", got)
	}
	runtime.KeepAlive(drivers)
}

// heapBytes returns what is in use behind garbage and pools.
func heapBytes() int {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
