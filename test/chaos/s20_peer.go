package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Types and flags of frames in HTTP/2, which peers here write by hand: what a library
// takes care of is what they leave out.
const (
	typeData         = 0
	typeHeaders      = 1
	typePriority     = 2
	typeReset        = 3
	typeSettings     = 4
	typePing         = 6
	typeGoAway       = 7
	typeWindow       = 8
	typeContinuation = 9

	flagEnd        = 1
	flagAck        = 1
	flagEndHeaders = 4
)

// h2 returns a frame.
func h2(frameType, flags byte, stream uint32, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(frameType))
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

func u32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// literal returns a header field that no table gets. Its texts are shorter than 127 bytes.
func literal(name, value string) []byte {
	b := append([]byte{0, byte(len(name))}, name...)
	return append(append(b, byte(len(value))), value...)
}

// preface is what a client begins with: its settings, and that it knows the server's.
func preface(settings ...byte) []byte {
	b := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2(typeSettings, 0, 0, settings...)...)
	return append(b, h2(typeSettings, flagAck, 0)...)
}

// requestBlock is the headers of a call of Chaos.call in gRPC, with others behind them.
func requestBlock(fields ...[]byte) []byte {
	block := append([]byte{0x83, 0x86}, literal(":path", "/Chaos/call")...)
	block = append(block, literal("content-type", "application/grpc+thrift")...)
	for _, field := range fields {
		block = append(block, field...)
	}
	return block
}

// prefixed is a message in gRPC.
func prefixed(flags byte, message []byte) []byte {
	return append(append([]byte{flags}, u32(uint32(len(message)))...), message...)
}

// abuser is one connection of a peer that means no good.
type abuser struct {
	conn  net.Conn
	start time.Time
	// id is that of its next stream. Only who sends uses it.
	id uint32
	// answers counts frames that ended a stream of its, data those with data of an answer,
	// resets those that reset one.
	answers, data, resets atomic.Int64
	// code is that of the server's GOAWAY, -1 without.
	code atomic.Int64
	// ended is closed when the connection is, at end.
	ended chan struct{}
	end   time.Time
	// stuck: what it sent was not taken for long.
	stuck atomic.Bool
}

// attackPatience bounds what one connection of an attack may take.
const attackPatience = 20 * time.Second

func newAbuser(conn net.Conn) *abuser {
	a := &abuser{conn: conn, start: time.Now(), id: 1, ended: make(chan struct{})}
	a.code.Store(-1)
	_ = conn.SetDeadline(a.start.Add(attackPatience))
	return a
}

// read counts what the server says, until the connection ends.
func (a *abuser) read(attack *abuse) {
	defer close(a.ended)
	defer func() { a.end = time.Now() }()
	switch {
	case attack.behind != nil:
		a.readFrames()
		return
	case attack.raw:
		_, _ = io.Copy(io.Discard, a.conn)
		return
	}
	buf := make([]byte, 0, 64<<10)
	for {
		n, err := a.conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		for len(buf) >= 9 {
			length := int(binary.BigEndian.Uint32(buf) >> 8)
			if len(buf) < 9+length {
				break
			}
			a.count(buf[3], buf[4], buf[9:9+length])
			buf = append(buf[:0], buf[9+length:]...)
		}
		if err != nil {
			a.stuck.Store(errors.Is(err, os.ErrDeadlineExceeded))
			return
		}
	}
}

// readFrames counts what ends streams of TTHeader, that of the last one as data.
func (a *abuser) readFrames() {
	reader := bufio.NewReader(a.conn)
	for {
		head, err := reader.Peek(12)
		if err != nil {
			return
		}
		if a.answers.Add(1); binary.BigEndian.Uint32(head[8:]) == lastStream {
			a.data.Add(1)
		}
		if _, err := reader.Discard(4 + int(binary.BigEndian.Uint32(head))); err != nil {
			return
		}
	}
}

func (a *abuser) count(frameType, flags byte, payload []byte) {
	switch frameType {
	case typeHeaders:
		if flags&flagEnd != 0 {
			a.answers.Add(1)
		}
	case typeData:
		a.data.Add(1)
	case typeReset:
		a.resets.Add(1)
	case typeGoAway:
		if len(payload) >= 8 {
			a.code.Store(int64(binary.BigEndian.Uint32(payload[4:])))
		}
	}
}

// send sends pieces until the server takes no more, or there is none.
func (a *abuser) send(next func() []byte) {
	var out []byte
	for {
		piece := next()
		out = append(out, piece...)
		if len(out) < 16<<10 && piece != nil {
			continue
		}
		if _, err := a.conn.Write(out); err != nil || piece == nil {
			return
		}
		out = out[:0]
	}
}

// isOver reports whether the server has closed the connection.
func (a *abuser) isOver() bool {
	select {
	case <-a.ended:
		return !a.stuck.Load()
	default:
		return false
	}
}

// within waits until something is so, or the connection has ended, and reports whether it
// is so.
func (a *abuser) within(patience time.Duration, so func() bool) bool {
	for limit := time.Now().Add(patience); !so(); {
		if time.Now().After(limit) {
			return false
		}
		select {
		case <-a.ended:
			return so()
		case <-time.After(2 * time.Millisecond):
		}
	}
	return true
}

// stream begins a stream with fields behind those that each request has.
func (a *abuser) stream(flags byte, fields ...[]byte) []byte {
	a.id += 2
	return h2(typeHeaders, flags|flagEndHeaders, a.id-2, requestBlock(fields...)...)
}

// call is a stream with all of its request.
func (a *abuser) call(message []byte, fields ...[]byte) []byte {
	id := a.id
	b := a.stream(0, fields...)
	for ; len(message) > 16_000; message = message[16_000:] {
		b = append(b, h2(typeData, 0, id, message[:16_000]...)...)
	}
	return append(b, h2(typeData, flagEnd, id, message...)...)
}

// abusers are the connections of one attack.
type abusers struct {
	all     []*abuser
	waiting sync.WaitGroup
}

func (a *abusers) close() {
	for _, one := range a.all {
		reset(one.conn)
	}
	a.waiting.Wait()
}
