package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// disorderly is a server that multiplexes, as it says, and answers calls in any
// order, some of them twice, some late, some that nobody made.
type disorderly struct {
	listener net.Listener
	ended    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	// opened counts connections, odd what it sent beside the answers.
	opened, odd int
}

func startDisorderly() (*disorderly, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &disorderly{listener: listener}
	d.ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.conns = append(d.conns, conn)
			d.opened++
			seed := uint64(d.opened)
			d.mu.Unlock()
			d.ended.Go(func() {
				defer conn.Close()
				_ = d.serve(conn, rand.New(rand.NewPCG(seed, 17)))
			})
		}
	})
	return d, nil
}

func (d *disorderly) close() {
	_ = d.listener.Close()
	d.mu.Lock()
	for _, conn := range d.conns {
		_ = conn.Close()
	}
	d.mu.Unlock()
	d.ended.Wait()
}

// answer is a reply that is not sent yet.
type answer struct {
	sequence uint32
	frame    []byte
}

// serve answers the calls of a connection, shuffled among those that have arrived.
func (d *disorderly) serve(conn net.Conn, random *rand.Rand) error {
	reader, writer := bufio.NewReaderSize(conn, 1<<16), bufio.NewWriterSize(conn, 1<<16)
	var waiting, late []answer
	for {
		frame, err := readTTHeader(reader)
		if err != nil {
			return err
		}
		reply, err := frame.reply()
		if err != nil {
			return err
		}
		// One of 2,000 comes when its caller has given up.
		if frame.claims || random.IntN(2000) != 0 {
			waiting = append(waiting, reply)
		} else {
			late = append(late, reply)
		}
		if reader.Buffered() > 0 && len(waiting) < 256 {
			continue
		}
		random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		for _, reply := range waiting {
			_, _ = writer.Write(reply.frame)
			d.oddities(writer, reply, random, frame.claims)
		}
		waiting = waiting[:0]
		if len(late) > 20 {
			for _, reply := range late {
				_, _ = writer.Write(reply.frame)
			}
			late = late[:0]
		}
		if err := writer.Flush(); err != nil {
			return err
		}
	}
}

// oddities sends replies that nobody waits for.
func (d *disorderly) oddities(writer io.Writer, reply answer, random *rand.Rand, first bool) {
	if first {
		return
	}
	other := append([]byte(nil), reply.frame...)
	switch random.IntN(1000) {
	case 0: // The same once more.
	case 1: // One with the sequence id 0, which is no call's.
		binary.BigEndian.PutUint32(other[8:], 0)
	case 2: // One that nobody made, or not yet, or long ago.
		binary.BigEndian.PutUint32(other[8:], reply.sequence+1<<20+random.Uint32N(1<<20))
	default:
		return
	}
	_, _ = writer.Write(other)
	d.mu.Lock()
	d.odd++
	d.mu.Unlock()
}

// ttheader is a message behind a TTHeader, as far as this server needs it.
type ttheader struct {
	sequence uint32
	// claims: the peer asks whether its calls may share the connection.
	claims  bool
	message []byte
}

var errNotTTHeader = errors.New("not a TTHeader")

func readTTHeader(reader io.Reader) (frame ttheader, err error) {
	var head [14]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil {
		return frame, err
	}
	length := int(binary.BigEndian.Uint32(head[:]))
	info := int(binary.BigEndian.Uint16(head[12:])) * 4
	if binary.BigEndian.Uint16(head[4:]) != 0x1000 || length < 10+info || length > 1<<20 {
		return frame, errNotTTHeader
	}
	rest := make([]byte, length-10)
	if _, err := io.ReadFull(reader, rest); err != nil {
		return frame, err
	}
	frame.sequence = binary.BigEndian.Uint32(head[8:])
	frame.claims = containsCapabilities(rest[:info])
	frame.message = rest[info:]
	return frame, nil
}

func containsCapabilities(info []byte) bool {
	const key = "fulmar-caps"
	for i := 0; i+len(key) <= len(info); i++ {
		if string(info[i:i+len(key)]) == key {
			return true
		}
	}
	return false
}

// reply makes the answer to a call of Chaos.call: the same id and payload.
func (f *ttheader) reply() (answer, error) {
	const strict = 8
	message := f.message
	if len(message) < strict {
		return answer{}, errNotTTHeader
	}
	name := int(binary.BigEndian.Uint32(message[4:]))
	if name < 0 || len(message) < strict+name+4 {
		return answer{}, errNotTTHeader
	}
	var arguments chaosapi.ChaosCallArgs
	if err := thrift.Unmarshal(message[strict+name+4:], &arguments); err != nil {
		return answer{}, err
	}
	request := arguments.Request
	body, err := thrift.Marshal(&chaosapi.ChaosCallResult{Success: &chaosapi.Reply{ID: request.ID, Payload: request.Payload}})
	if err != nil {
		return answer{}, err
	}
	info := []byte{0, 0, 0, 0} // Protocol Binary, no transforms, padding.
	if f.claims {
		info = []byte{0, 0, 1, 0, 1, 0, 11}
		info = append(info, "fulmar-caps"...)
		info = append(info, 0, 3)
		info = append(info, "mux"...)
		for len(info)%4 != 0 {
			info = append(info, 0)
		}
	}
	frame := make([]byte, 14, 14+len(info)+strict+name+4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(10+len(info)+strict+name+4+len(body)))
	binary.BigEndian.PutUint16(frame[4:], 0x1000)
	binary.BigEndian.PutUint16(frame[6:], 1) // Out of order.
	binary.BigEndian.PutUint32(frame[8:], f.sequence)
	binary.BigEndian.PutUint16(frame[12:], uint16(len(info)/4))
	frame = append(frame, info...)
	frame = append(frame, 0x80, 1, 0, 2)
	frame = append(frame, message[4:strict+name+4]...)
	return answer{f.sequence, append(frame, body...)}, nil
}

// disorder is S17: replies come in any order, twice, late, and for nobody.
func disorder(ctx context.Context, size size) (seen figures, err error) {
	server, err := startDisorderly()
	if err != nil {
		return seen, err
	}
	defer server.close()
	calling, err := fulmar.NewClient(fulmar.ClientConfig{Target: server.listener.Addr().String(), Timeout: -1, ConnectTimeout: time.Minute})
	if err != nil {
		return seen, err
	}
	defer calling.Close()
	api := chaosapi.NewChaosClient(calling)
	const parallel = 200
	each := size.of(20_000, 1_000_000)/parallel + 1
	var ids callers
	var books []*ledger.Book
	var all sync.WaitGroup
	// A connection is there before the crowd comes: on a busy machine that takes longer
	// than its calls may.
	first := &caller{api: api, book: ids.book(), limit: time.Minute, request: chaosapi.Request{Payload: make([]byte, 32)}}
	books = append(books, first.book)
	first.call(ctx)
	quiet := busyMachine()
	for range parallel {
		one := &caller{api: api, book: ids.book(), limit: 2 * time.Second, request: chaosapi.Request{Payload: make([]byte, 32)}}
		books = append(books, one.book)
		all.Go(func() {
			for range each {
				one.call(ctx)
			}
		})
	}
	all.Wait()
	taken := quiet()
	verdict := ledger.Judge(books, nil, 0)
	late := took(books, func(c *ledger.Call) bool { return c.Outcome == ledger.Maybe })
	seen.unlessBusy(taken, func(f *figures) {
		f.least("replies", float64(verdict.Succeeded), float64(each*parallel)*0.99, "")
	})
	seen.most("crossed", float64(verdict.Crossed), 0, "")
	seen.note("given up %d", len(late))
	seen.least("late and odd replies counted", float64(calling.Stats().LateReplies), 1, "")
	server.mu.Lock()
	seen.note("odd ones sent %s", thousands(int64(server.odd)))
	seen.mostUnlessBusy("connections", float64(server.opened), 4+1, "", taken)
	server.mu.Unlock()
	if verdict.Maybe < verdict.Failed() {
		return seen, fmt.Errorf("%d calls failed in other ways than by timeout", verdict.Failed()-verdict.Maybe)
	}
	seen.ended(books, taken)
	seen.judged(verdict)
	return seen, nil
}
