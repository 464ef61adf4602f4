package eventloop_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

var (
	programSeeds = flag.Int("seeds", 30, "how many seeds TestPrograms runs")
	programFirst = flag.Uint64("seed", 1, "the first seed of TestPrograms; use with -seeds 1 to replay")
)

// TestPrograms runs clients against an echo server over real sockets. The clients
// send in pieces, read slowly, stop sending, reset, or just go. The server echoes
// from its handler, from other goroutines, in the order of the bytes; it waits in
// the handler, pauses, holds, closes in every way, panics and shuts down. What a
// client got must be the beginning of what it sent, and all of it if both sides
// ended in good order; every connection ends once, and nothing is left.
func TestPrograms(t *testing.T) {
	var total programTally
	for i := range *programSeeds {
		seed := *programFirst + uint64(i)
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { runPrograms(t, seed, &total) }) {
			t.Fatalf("replay with: go test ./eventloop -run TestPrograms -seed %d -seeds 1", seed)
		}
	}
	t.Logf("%d connections, %d in good order, %d bytes came back", total.connections.Load(), total.complete.Load(), total.bytes.Load())
	if *programSeeds >= 10 && (total.complete.Load() == 0 || total.complete.Load() == total.connections.Load()) {
		t.Errorf("%d of %d connections ended in good order: the programs do not reach what they are for", total.complete.Load(), total.connections.Load())
	}
}

// programTally counts over all seeds.
type programTally struct{ connections, complete, bytes atomic.Int64 }

// programs are the server and the clients of one seed.
type programs struct {
	t        *testing.T
	listener *eventloop.Listener
	network  string
	total    *programTally
	// ending: the listener is shut down or closed, so connections may end at
	// any time.
	ending atomic.Bool
	// others are goroutines of the server that handlers started.
	others sync.WaitGroup

	mu     sync.Mutex
	closed map[uint64]ending
}

// ending is how a connection ended for the server.
type ending struct {
	cause error
	// wanted: the server has ended it. short: the handler waits for more than
	// there is.
	wanted, short bool
}

// echo is the server's side of one connection, which belongs to its handler.
type echo struct {
	number uint64
	random *rand.Rand
	busy   atomic.Bool // another goroutine echoes
	wanted atomic.Bool
	short  bool
	closes atomic.Int64
}

func runPrograms(t *testing.T, seed uint64, total *programTally) {
	baseline := testkit.NewBaseline()
	random := rand.New(rand.NewPCG(seed, 0))
	p := &programs{t: t, total: total, closed: map[uint64]ending{}}
	config := eventloop.Config{
		Dispatch: []eventloop.Dispatch{eventloop.DispatchSpawn, eventloop.DispatchInline, eventloop.DispatchAuto}[random.IntN(3)],
		Pollers:  1 + random.IntN(2),
		OnClose:  p.onClose,
		Logger:   silence(),
	}
	var opened atomic.Uint64
	config.OnOpen = func(conn *eventloop.Conn) {
		conn.SetContext(&echo{random: rand.New(rand.NewPCG(seed, 1<<32+opened.Add(1)))})
	}
	p.network = "tcp"
	address := "127.0.0.1:0"
	if runtime.GOOS != "windows" && random.IntN(3) == 0 {
		p.network, address = "unix", filepath.Join(t.TempDir(), "socket")
	}
	if *testEngine == "std" {
		config.Engine = eventloop.EngineStd
	}
	var err error
	if p.listener, err = eventloop.Listen(p.network, address, config); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.listener.Serve(context.Background(), p.handle) }()
	const clients, each = 8, 4
	var all sync.WaitGroup
	for i := range uint64(clients) {
		random := rand.New(rand.NewPCG(seed, 100+i))
		all.Go(func() {
			for j := range uint64(each) {
				p.runClient(random, 1+i*each+j)
			}
		})
	}
	p.end(random)
	all.Wait()
	p.ending.Store(true)
	if err := p.listener.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := receive(t, served, "Serve to return"); err != nil {
		t.Errorf("Serve = %v", err)
	}
	p.others.Wait()
	if open := p.listener.Stats().Open; open != 0 {
		t.Errorf("%d connections are open after the end", open)
	}
	// A goroutine that had lost the role may be on its way out.
	eventually(t, "the end of all read buffers", func() bool { return p.listener.Stats().Loop.Buffers == 0 })
	if err := baseline.Check(patience); err != nil {
		t.Error(err)
	}
}

// end ends the listener while the clients are at work, or not.
func (p *programs) end(random *rand.Rand) {
	how, after := random.IntN(6), random.Uint64N(20)
	if how > 2 {
		return
	}
	eventually(p.t, "some connections", func() bool { return p.listener.Stats().Accepted > after })
	p.ending.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch how {
	case 0:
		_ = p.listener.Close()
	case 1:
		cancel()
		if err := p.listener.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
			p.t.Errorf("Shutdown = %v", err)
		}
	case 2:
		if err := p.listener.Shutdown(ctx); err != nil {
			p.t.Errorf("Shutdown = %v", err)
		}
	}
}

// --- the server ---

func (p *programs) onClose(conn *eventloop.Conn, err error) {
	e := conn.Context().(*echo)
	if e.closes.Add(1) != 1 {
		p.t.Errorf("OnClose was called twice for connection %d", e.number)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed[e.number] = ending{err, e.wanted.Load(), e.short}
}

// handle echoes some of what is there, in some way.
func (p *programs) handle(conn *eventloop.Conn) error {
	e, r := conn.Context().(*echo), conn.Reader()
	if e.busy.Load() || r.Len() == 0 {
		return nil
	}
	if e.number == 0 {
		first, err := r.Peek(8)
		if err != nil {
			e.short = true
			return err
		}
		e.number = binary.BigEndian.Uint64(first)
	}
	e.short = r.Len() < 1000 && e.random.IntN(20) == 0
	if e.short {
		return eventloop.ErrMore
	}
	piece, err := r.Next(1 + e.random.IntN(r.Len()))
	if err != nil {
		return err
	}
	switch e.random.IntN(14) {
	case 0, 1:
		if err := conn.Writer().Flush(); err != nil {
			return err
		}
		_, err := conn.Write(piece)
		return err
	case 2:
		return p.echoLater(conn, bytes.Clone(piece))
	case 3:
		conn.Writer().Append(piece)
		return p.readOn(conn)
	case 4:
		conn.Writer().Append(piece)
		conn.PauseReading()
		p.others.Go(func() {
			giveWay(e.number)
			conn.ResumeReading()
		})
		return nil
	case 5:
		conn.Writer().Append(piece)
		return p.endOne(conn)
	case 6, 7:
		return p.echoDetached(conn, piece)
	default:
		conn.Writer().Append(piece)
		return nil
	}
}

// giveWay lets others run, for a while that depends on n.
func giveWay(n uint64) {
	for range n % 32 {
		runtime.Gosched()
	}
}

// echoLater echoes from another goroutine, while the handler leaves what arrives.
func (p *programs) echoLater(conn *eventloop.Conn, piece []byte) error {
	if err := conn.Writer().Flush(); err != nil {
		return err
	}
	e := conn.Context().(*echo)
	e.busy.Store(true)
	conn.Hold()
	p.others.Go(func() {
		giveWay(uint64(len(piece)))
		n, err := conn.TryWriteBuffers([][]byte{piece})
		if err == nil && n < int64(len(piece)) {
			_, err = conn.WriteRest([][]byte{piece[n:]}, n)
		}
		e.busy.Store(false)
		if err == nil {
			conn.Wake()
		}
		conn.Release()
	})
	return nil
}

// echoDetached lets go of the connection. What has arrived since is left until it
// has echoed: the bytes must stay in order.
func (p *programs) echoDetached(conn *eventloop.Conn, piece []byte) error {
	if err := conn.Writer().Flush(); err != nil {
		return err
	}
	e := conn.Context().(*echo)
	ends := e.random.IntN(200)
	e.busy.Store(true)
	call := conn.Detach()
	giveWay(uint64(len(piece)))
	if call.Attach() {
		e.busy.Store(false)
		conn.Writer().Append(piece)
		return nil
	}
	switch ends {
	case 0:
		e.wanted.Store(true)
		return errors.New("enough")
	case 1:
		e.wanted.Store(true)
		panic("enough")
	case 2:
		e.wanted.Store(true)
		runtime.Goexit()
	}
	_, err := conn.WriteBuffers([][]byte{piece})
	e.busy.Store(false)
	conn.Wake()
	return err
}

// readOn waits in the handler for more, for a short time, and echoes that too.
func (p *programs) readOn(conn *eventloop.Conn) error {
	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	more := make([]byte, 5000)
	n, err := conn.Read(more)
	conn.SetReadDeadline(time.Time{})
	conn.Writer().Append(more[:n])
	if errors.Is(err, os.ErrDeadlineExceeded) || err == io.EOF {
		return nil // the engine finds the end by itself
	}
	return err
}

// endOne ends a connection, once in a while.
func (p *programs) endOne(conn *eventloop.Conn) error {
	e := conn.Context().(*echo)
	how := e.random.IntN(40)
	if how > 5 {
		return nil
	}
	e.wanted.Store(true)
	enough := errors.New("enough")
	switch how {
	case 0:
		return enough
	case 1:
		panic(enough)
	case 2:
		runtime.Goexit()
	case 3:
		conn.CloseWithError(enough)
	case 4:
		conn.Abort()
	case 5:
		p.others.Go(func() { giveWay(e.number); conn.Close() })
	}
	return nil
}

// --- the clients ---

// runClient is one connection.
func (p *programs) runClient(random *rand.Rand, number uint64) {
	conn, err := net.Dial(p.network, p.listener.Addr().String())
	if err != nil {
		if !p.ending.Load() {
			p.t.Errorf("client %d: %v", number, err)
		}
		return
	}
	defer conn.Close()
	p.total.connections.Add(1)
	_ = conn.SetDeadline(time.Now().Add(patience))
	content := make([]byte, 8+random.IntN(1<<(4+random.IntN(16))))
	for i := range content {
		content[i] = byte(i>>9) ^ byte(i)*byte(number)
	}
	binary.BigEndian.PutUint64(content, number)
	// leaves: the client goes before it has everything.
	leaves := random.IntN(4) == 0
	slow := random.Uint64N(32)
	piece := make([]byte, 1+random.IntN(64<<10))
	var got []byte
	var readErr error
	var reader sync.WaitGroup
	reader.Go(func() {
		for readErr == nil {
			var n int
			n, readErr = conn.Read(piece)
			got = append(got, piece[:n]...)
			giveWay(slow)
		}
	})
	writeErr := sendInPieces(conn, content, rand.New(rand.NewPCG(number, 7)))
	switch {
	case leaves && random.IntN(2) == 0:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	case leaves:
		conn.Close()
	case writeErr == nil:
		writeErr = conn.(interface{ CloseWrite() error }).CloseWrite()
	}
	reader.Wait()
	p.total.bytes.Add(int64(len(got)))
	p.judge(number, content, got, leaves, writeErr, readErr)
}

func sendInPieces(conn net.Conn, content []byte, random *rand.Rand) error {
	for len(content) > 0 {
		n := min(len(content), 1+random.IntN(1+random.IntN(100<<10)))
		if _, err := conn.Write(content[:n]); err != nil {
			return err
		}
		content = content[n:]
		giveWay(random.Uint64N(32))
	}
	return nil
}

// judge compares what a client got with what it sent, and how both sides ended.
func (p *programs) judge(number uint64, content, got []byte, leaves bool, writeErr, readErr error) {
	if errors.Is(writeErr, os.ErrDeadlineExceeded) || errors.Is(readErr, os.ErrDeadlineExceeded) {
		p.t.Errorf("client %d hangs, after %d of %d bytes: %v, %v", number, len(got), len(content), writeErr, readErr)
		return
	}
	if !bytes.HasPrefix(content, got) {
		p.t.Errorf("client %d got other bytes than it sent, or in another order", number)
	}
	if leaves {
		return
	}
	var end ending
	known := false
	eventually(p.t, "the end of a connection", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		end, known = p.closed[number]
		return known || p.ending.Load()
	})
	complete := writeErr == nil && readErr == io.EOF && len(got) == len(content)
	switch {
	case complete:
		p.total.complete.Add(1)
	case end.wanted, p.ending.Load():
	case end.short && errors.Is(end.cause, io.ErrUnexpectedEOF) && readErr == io.EOF:
	default:
		p.t.Errorf("client %d got %d of %d bytes, %v, %v; the server's end: %+v", number, len(got), len(content), writeErr, readErr, end)
	}
}
