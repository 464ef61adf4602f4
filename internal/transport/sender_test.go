package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// These tests look into the sender: what it tells of a message, and when it is
// done with it, shows at the connections that use it by chance only.

// letter is a message on its way through a sender.
type letter struct {
	outgoing
	id int32
	// sent and after count the calls of the functions of those names.
	sent, later atomic.Int32
	withdrawn   bool
	refused     bool
}

// newLetter returns a message of size bytes, more or less, that are all alike.
func newLetter(t *testing.T, pool *linkbuf.Pool, id int32, size int) *letter {
	l := &letter{id: id}
	l.protocol, l.name, l.sequence = wire.Framed, "m", id
	if err := l.begin(pool, 0); err != nil {
		t.Error(err)
	}
	l.Append(bytes.Repeat([]byte{byte(id)}, size))
	l.after = func() { l.later.Add(1) }
	l.finish(thriftwire.Call)
	return l
}

// post is a sender with a peer that notes what arrives.
type post struct {
	sender   sender
	failures atomic.Int32
	arrived  []int32
	// lossy: the network may have lost what it accepted.
	lossy bool
	// damaged says what arrived that nobody sent.
	damaged error
}

func newPost(conn net.Conn, letters map[*outgoing]*letter, mu *sync.Mutex) *post {
	p := &post{}
	p.sender.conn = eventloop.NewConn(conn, eventloop.Config{})
	p.sender.crowded = func() bool { return true }
	p.sender.failed = func(error) {
		p.failures.Add(1)
		_ = p.sender.conn.Close()
	}
	p.sender.sent = func(o *outgoing) {
		mu.Lock()
		defer mu.Unlock()
		letters[o].sent.Add(1)
	}
	return p
}

// receive reads messages until the connection ends. What is cut off at its end is
// no message.
func (p *post) receive(conn net.Conn) {
	for {
		var length [4]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(conn, b); err != nil {
			return
		}
		header, size, _, err := thriftwire.ParseHeader(b)
		if err != nil || size == 0 || string(header.Name) != "m" {
			p.damaged = fmt.Errorf("a message of %d bytes that nobody sent: %w", len(b), err)
			return
		}
		if body := b[size:]; bytes.Count(body, []byte{byte(header.Sequence)}) != len(body) {
			p.damaged = fmt.Errorf("message %d holds bytes of others", header.Sequence)
			return
		}
		p.arrived = append(p.arrived, header.Sequence)
	}
}

// exchange sends letters of several writers over conn to peer, pausing between
// them, while disturb does what it likes, and checks what has become of each.
func exchange(t *testing.T, random *rand.Rand, conn, peer net.Conn, pause func(*rand.Rand), disturb func(*post)) (outcomes map[uint32]int) {
	const writers, each = 4, 30
	pool := linkbuf.NewPool()
	letters, mu := map[*outgoing]*letter{}, &sync.Mutex{}
	p := newPost(conn, letters, mu)
	var receiver, all sync.WaitGroup
	receiver.Go(func() { p.receive(peer) })
	for writer := range int32(writers) {
		seed := random.Uint64()
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			for i := range int32(each) {
				size := []int{0, 1, 100, 3000, 20_000}[random.IntN(5)]
				l := newLetter(t, pool, writer*each+i, size)
				mu.Lock()
				letters[&l.outgoing] = l
				mu.Unlock()
				l.refused = p.sender.send(&l.outgoing) != nil
				if random.IntN(4) == 0 {
					l.withdrawn = p.sender.withdraw(&l.outgoing)
				}
				l.release()
				pause(random)
			}
		})
	}
	disturb(p)
	all.Wait()
	p.finish(t, func() { pause(random) })
	_ = p.sender.conn.Close()
	receiver.Wait()
	_ = peer.Close()
	return p.check(t, letters, each)
}

// finish waits until the sender has nothing to do.
func (p *post) finish(t *testing.T, pause func()) {
	for range 10_000_000 {
		p.sender.mu.Lock()
		idle := !p.sender.writing
		p.sender.mu.Unlock()
		if idle {
			return
		}
		pause()
	}
	t.Error("the sender does not come to an end")
}

// check compares what the sender tells of each letter with what has arrived.
func (p *post) check(t *testing.T, letters map[*outgoing]*letter, each int32) map[uint32]int {
	t.Helper()
	outcomes := map[uint32]int{}
	if p.damaged != nil {
		t.Error(p.damaged)
	}
	if n := p.failures.Load(); n > 1 || len(p.sender.queue) > 0 || len(p.sender.batch) > 0 {
		t.Errorf("failed %d times; %d letters are queued, %d in work", n, len(p.sender.queue), len(p.sender.batch))
	}
	last := map[int32]int32{}
	for _, id := range p.arrived {
		if before, ok := last[id/each]; ok && id <= before {
			t.Errorf("letter %d arrived behind letter %d", id, before)
		}
		last[id/each] = id
	}
	for _, l := range letters {
		state, arrived := l.state.Load(), slices.Contains(p.arrived, l.id)
		outcomes[state]++
		switch {
		case l.sent.Load() != 1 || l.later.Load() != 1:
			t.Errorf("letter %d: done %d times, after %d times", l.id, l.sent.Load(), l.later.Load())
		case l.owners.Load() != 0 || l.Len() != 0:
			t.Errorf("letter %d: %d owners, %d bytes", l.id, l.owners.Load(), l.Len())
		case state != stateSent && state != stateDropped && state != stateWithdrawn:
			t.Errorf("letter %d ended in state %d", l.id, state)
		case arrived && state != stateSent:
			t.Errorf("letter %d arrived, its state is %d", l.id, state)
		case !arrived && state == stateSent && !p.lossy:
			t.Errorf("letter %d was lost", l.id)
		case l.withdrawn != (state == stateWithdrawn), l.refused && state != stateDropped:
			t.Errorf("letter %d: withdrawn %v, refused %v, state %d", l.id, l.withdrawn, l.refused, state)
		}
	}
	return outcomes
}

// TestSender_TellsWhatBecomesOfEachMessage: whatever the network does, what
// arrives is whole and in order, what was withdrawn or dropped does not arrive,
// and the sender is done with everything exactly once.
func TestSender_TellsWhatBecomesOfEachMessage(t *testing.T) {
	const seeds = 60
	total := map[uint32]int{}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			network := simnet.New(simnet.Config{
				Seed: seed, SplitPercent: random.IntN(100), BufferBytes: 1 << (12 + random.IntN(6)),
				Delay: time.Duration(random.IntN(3)) * time.Millisecond, DelayJitter: time.Duration(random.IntN(3)) * time.Millisecond,
			})
			const address = "sim:1"
			listener, err := network.Listen(address)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := network.Dial(context.Background(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			peer, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			_ = listener.Close()
			pause := func(random *rand.Rand) { time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond) }
			outcomes := exchange(t, random, conn, peer, pause, func(p *post) {
				time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
				disturbance := random.IntN(6)
				p.lossy = disturbance < 3
				switch disturbance {
				case 0:
					network.Cut(address)
				case 1:
					_ = peer.Close()
				case 2:
					_ = conn.Close()
				case 3:
					p.sender.close(errors.New("closed"))
				case 4:
					network.Stall(address, true)
					time.Sleep(100 * time.Millisecond)
					network.Stall(address, false)
				}
			})
			for state, n := range outcomes {
				total[state] += n
			}
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
	for _, state := range []uint32{stateSent, stateDropped, stateWithdrawn} {
		if total[state] < seeds {
			t.Errorf("%d letters ended in state %d: the test does not reach what it is for", total[state], state)
		}
	}
}

// TestSender_WritesWhatTheSocketTakesAtOnce: the same over a socket of the system,
// which is written to without waiting first.
func TestSender_WritesWhatTheSocketTakesAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for seed := range uint64(8) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		peer, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		pause := func(*rand.Rand) { runtime.Gosched() }
		outcomes := exchange(t, random, conn, peer, pause, func(p *post) {
			if seed%4 == 3 {
				p.lossy = true
				_ = conn.Close()
			}
		})
		if seed%4 != 3 && (outcomes[stateSent] == 0 || outcomes[stateDropped] > 0) {
			t.Errorf("seed %d: %v", seed, outcomes)
		}
	}
}

// TestOutgoing_IsRecycledOnce: however often it is released, and not at all once it was
// withdrawn.
func TestOutgoing_IsRecycledOnce(t *testing.T) {
	pool := linkbuf.NewPool()
	for state, want := range map[uint32]int{stateQueued: 1, stateSent: 1, stateDropped: 1, stateWithdrawn: 0} {
		recycled := 0
		l := newLetter(t, pool, 1, 100)
		l.recycle = func() { recycled++ }
		l.state.Store(state)
		for range 3 {
			l.release()
		}
		if recycled != want {
			t.Errorf("state %d: recycled %d times, want %d", state, recycled, want)
		}
	}
}

// TestSender_ForgetsWhatWasWithdrawn: while nothing can be written, messages that
// come and go leave nothing.
func TestSender_ForgetsWhatWasWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		letters, mu := map[*outgoing]*letter{}, &sync.Mutex{}
		p := newPost(near, letters, mu)
		pool := linkbuf.NewPool()
		post := func(id int32) *letter {
			l := newLetter(t, pool, id, 10)
			letters[&l.outgoing] = l
			if err := p.sender.send(&l.outgoing); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			return l
		}
		stuck := post(1)
		if p.sender.withdraw(&stuck.outgoing) {
			t.Error("a message that is being written was withdrawn")
		}
		var kept []*letter
		for id := int32(2); id < 1000; id++ {
			l := post(id)
			if id%100 == 0 {
				kept = append(kept, l)
				continue
			}
			if !p.sender.withdraw(&l.outgoing) || p.sender.withdraw(&l.outgoing) {
				t.Errorf("message %d was not withdrawn once", id)
			}
			l.release()
			if most := 2*len(kept) + 1; len(p.sender.queue) > most || l.Len() > 0 {
				t.Errorf("%d messages are queued, %d of them to be sent; %d bytes are kept", len(p.sender.queue), len(kept), l.Len())
			}
		}
		go p.receive(far)
		synctest.Wait()
		if want := []int32{1, 100, 200, 300, 400, 500, 600, 700, 800, 900}; !slices.Equal(p.arrived, want) || p.damaged != nil {
			t.Errorf("%v arrived, %v; want %v", p.arrived, p.damaged, want)
		}
		for _, l := range append(kept, stuck) {
			l.release()
		}
		_ = p.sender.conn.Close()
		_ = far.Close()
	})
}
