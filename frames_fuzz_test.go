package fulmar_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// FuzzFrames has a peer send any sequence of HTTP/2 frames to a server with streams and unary
// methods, and read or not. However that goes, every handler ends with the connection, no
// memory is kept, and another client is served.
func FuzzFrames(f *testing.F) {
	for _, program := range [][]byte{
		{0, 2, 1, 0, 1, 0, 9, 0},                         // a bidirectional stream with messages, ended
		{0, 0, 1, 1, 9, 9},                               // a list
		{0, 1, 1, 0, 1, 0, 3, 0, 0, 2, 3, 1},             // resets
		{0, 3, 2, 1, 0, 0, 0, 0, 5, 9, 0, 4, 2, 1, 0, 3}, // a unary call, and one that is not known
		{10, 0, 0, 0, 1, 1, 4, 0, 4, 1, 9, 1, 4, 1},      // nothing is read; windows
		{5, 4, 0xff, 6, 0, 7, 0, 8, 3, 1, 2, 3},          // settings, ping, goaway, continuation
		{11, 1, 5, 1, 3, 9, 8, 7, 11, 4, 2, 0, 5, 5},     // raw frames
	} {
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newStreaming(t, "grpc", &feed{}, fulmar.ServerConfig{MaxMessageBytes: 1 << 16}, fulmar.ClientConfig{})
			conn, err := s.network.Dial(t.Context(), "tcp", simAddress)
			if err != nil {
				t.Fatal(err)
			}
			peer := &framePeer{conn: conn, program: program, next: 1, wait: time.Sleep}
			var reader sync.WaitGroup
			reader.Go(peer.read)
			peer.write()
			time.Sleep(time.Minute)
			_ = conn.Close()
			peer.pause(false)
			reader.Wait()
			synctest.Wait()
			if stats := s.server.Stats(); stats.BufferedBytes != 0 || stats.Calls != 0 {
				t.Errorf("behind the connection there are %+v", stats)
			}
			if sum, err := testservice.NewCalculatorClient(s.client).Add(context.Background(), 1, 2); sum != 3 || err != nil {
				t.Errorf("another client: %d, %v", sum, err)
			}
		})
	})
}

// framePeer sends the frames that a program says. Each of its steps is a byte for what to do,
// and bytes for how.
type framePeer struct {
	conn    net.Conn
	program []byte
	// next is the id of the stream that begins next.
	next uint32
	wait func(time.Duration)

	mu     sync.Mutex
	paused chan struct{}
}

// pause stops reading, or goes on.
func (p *framePeer) pause(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.paused == nil:
		p.paused = make(chan struct{})
	case !on && p.paused != nil:
		close(p.paused)
		p.paused = nil
	}
}

func (p *framePeer) read() {
	buffer := make([]byte, 4096)
	for {
		p.mu.Lock()
		paused := p.paused
		p.mu.Unlock()
		if paused != nil {
			<-paused
			continue
		}
		if _, err := p.conn.Read(buffer); err != nil {
			return
		}
	}
}

// take returns the next byte of the program, 0 behind its end.
func (p *framePeer) take() byte {
	if len(p.program) == 0 {
		return 0
	}
	b := p.program[0]
	p.program = p.program[1:]
	return b
}

// bytes returns up to n bytes of the program.
func (p *framePeer) bytes(n int) []byte {
	n = min(n, len(p.program))
	b := p.program[:n]
	p.program = p.program[n:]
	return b
}

func (p *framePeer) write() {
	_ = p.conn.SetWriteDeadline(time.Now().Add(time.Hour))
	p.send([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	p.frame(4, 0, 0, nil)
	for steps := 0; len(p.program) > 0 && steps < 200; steps++ {
		p.step()
	}
}

func (p *framePeer) send(b []byte) {
	if _, err := p.conn.Write(b); err != nil {
		p.program = nil
	}
}

func (p *framePeer) frame(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	p.send(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// stream returns the id of a stream that has begun, or will.
func (p *framePeer) stream() uint32 { return 2*uint32(p.take()%8) + 1 }

func (p *framePeer) step() {
	const endStream, endHeaders = 1, 4
	switch p.take() % 12 {
	case 0:
		path := [...]string{"/Feed/list", "/Feed/fill", "/Feed/swap", "/Calculator/add", "/Feed/none", "none"}[p.take()%6]
		flags := endHeaders | p.take()&endStream
		p.frame(1, flags, p.next, requestHeaders(path))
		p.next += 2
	case 1:
		item := []byte{11, 0, 1, 0, 0, 0, 1, 'x', 8, 0, 2, 0, 0, 0, p.take(), 0}
		message := make([]byte, grpc.PrefixSize)
		grpc.PutPrefix(message, len(item), false)
		p.frame(0, p.take()&endStream, p.stream(), append(message, item...))
	case 2:
		p.frame(0, p.take()&endStream, p.stream(), p.bytes(int(p.take()%32)))
	case 3:
		p.frame(3, 0, p.stream(), []byte{0, 0, 0, p.take()})
	case 4:
		p.frame(8, 0, p.stream()-p.next%2*uint32(p.take()&1), binary.BigEndian.AppendUint32(nil, 1<<(p.take()%32)))
	case 5:
		p.frame(4, 0, 0, append([]byte{0, p.take() % 8}, binary.BigEndian.AppendUint32(nil, uint32(p.take())<<(p.take()%32))...))
	case 6:
		p.frame(6, p.take()&1, 0, make([]byte, 8))
	case 7:
		p.frame(7, 0, 0, []byte{0, 0, 0, p.take(), 0, 0, 0, 0})
	case 8:
		p.frame(9, p.take(), p.stream(), p.bytes(int(p.take()%32)))
	case 9:
		p.wait(time.Duration(1<<(p.take()%30)) * time.Microsecond)
	case 10:
		p.pause(p.take()%2 == 0)
	case 11:
		p.frame(p.take(), p.take(), p.stream(), p.bytes(int(p.take()%64)))
	}
}

// requestHeaders returns the header block of a call, without a table.
func requestHeaders(path string) []byte {
	block := []byte{0x83, 0x86} // :method POST, :scheme http
	for _, field := range [...][2]string{{":path", path}, {":authority", "server"}, {"content-type", "application/grpc+thrift"}, {"te", "trailers"}} {
		block = append(block, 0, byte(len(field[0])))
		block = append(block, field[0]...)
		block = append(block, byte(len(field[1])))
		block = append(block, field[1]...)
	}
	return block
}
