package transport_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// disorderly is a server that answers whatever has come in any order, with
// answers that nobody asked for among them.
type disorderly struct {
	t      *testing.T
	extras atomic.Int64
	// wrapped: a sequence id came that is behind the largest.
	wrapped atomic.Bool
}

// answered appends the answer to a call: its own body.
func answered(dst []byte, message *wire.Message, sequence int32, pairs []ttheader.Pair) []byte {
	head := ttheader.Head{Sequence: sequence, Strings: pairs}
	size, _ := head.Size()
	name := string(message.Name)
	length := thriftwire.AppendedHeaderSize(name) + len(message.Body)
	start := len(dst)
	dst = append(dst, make([]byte, size+length-len(message.Body))...)
	head.Put(dst[start:start+size], length)
	thriftwire.PutHeader(dst[start+size:], thriftwire.Reply, name, message.Sequence)
	return append(dst, message.Body...)
}

// serve answers on one connection until it ends.
func (d *disorderly) serve(conn net.Conn, random *rand.Rand) {
	defer conn.Close()
	arrived := make([]byte, 0, 1<<20)
	// made holds the answers one after the other, batch where they are.
	var made, answer []byte
	type span struct{ start, end int }
	var batch []span
	for {
		n, err := conn.Read(arrived[len(arrived):cap(arrived)])
		if err != nil {
			return
		}
		arrived = arrived[:len(arrived)+n]
		batch, made, answer = batch[:0], made[:0], answer[:0]
		rest := arrived
		for {
			message, used, _, err := ttheader.Next(rest, limits.DefaultMessage())
			if err = errors.Join(err, message.Invalid); err != nil {
				d.t.Errorf("the client wrote %v", err)
				return
			}
			if used == 0 {
				break
			}
			rest = rest[used:]
			if message.HeaderSequence < 0 {
				d.wrapped.Store(true)
			}
			if message.Flags == 0 {
				// The first call on a connection, which waits alone.
				answer = answered(answer, &message, message.HeaderSequence, []ttheader.Pair{{Key: wire.Capabilities, Value: "mux"}})
				continue
			}
			add := func(sequence int32) {
				start := len(made)
				made = answered(made, &message, sequence, nil)
				batch = append(batch, span{start, len(made)})
			}
			add(message.HeaderSequence)
			switch random.IntN(20) {
			case 0: // once more
				add(message.HeaderSequence)
			case 1: // for nobody
				add(message.HeaderSequence + 1<<30)
			case 2: // for nobody ever
				add(0)
			default:
				continue
			}
			d.extras.Add(1)
		}
		arrived = arrived[:copy(arrived, rest)]
		random.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		for _, one := range batch {
			answer = append(answer, made[one.start:one.end]...)
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// listenDisorderly serves on a free port until the test ends.
func listenDisorderly(t *testing.T, d *disorderly) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for number := uint64(0); ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { d.serve(conn, rand.New(rand.NewPCG(1, number))) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	return listener.Addr().String()
}

// echoCall makes one call whose body is a binary field with id, and checks that
// the same comes back.
func echoCall(ctx context.Context, peer *transport.Peer, id uint64) (sent []byte, got []byte, err error) {
	request, err := peer.NewRequest(transport.Method{Name: "echo", Qualified: "echo"}, transport.RequestHead{})
	if err != nil {
		return nil, nil, err
	}
	defer request.Release()
	sent = append(binary.BigEndian.AppendUint64([]byte{0x0a, 0, 1}, id), 0)
	request.Body().Append(sent)
	response, err := peer.Do(ctx, request)
	if err != nil {
		return sent, nil, err
	}
	defer response.Release()
	return sent, bytes.Clone(response.Body), nil
}

// TestPeer_DisorderCrossesNoReplies: replies in any order, twice, late, for
// nobody and with sequence id 0. Each call gets its own, the others are dropped
// and counted, and no connection is given up (S17 of the fault scenarios). In the middle
// the sequence ids wrap: 2^31 calls would take hours.
func TestPeer_DisorderCrossesNoReplies(t *testing.T) {
	const callers = 256
	total := 1_000_000
	if assert.Enabled || testing.Short() {
		total = 50_000
	}
	server := &disorderly{t: t}
	target := listenDisorderly(t, server)
	var dials, crossed, failed, givenUp atomic.Int64
	peer := transport.NewPeer(transport.PoolConfig{
		Dial: func(ctx context.Context) (*eventloop.Conn, error) {
			dials.Add(1)
			return eventloop.Dial(ctx, "tcp", target, eventloop.Config{})
		},
		Protocol: wire.TTHeader, Limits: limits.DefaultMessage(), Connections: callers, Waiting: callers, ConnectTimeout: time.Minute,
	})
	defer peer.Close()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := echoCall(context.Background(), peer, 0); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range total / callers {
				if caller == 0 && i == total/callers/2 {
					peer.SetSequence(math.MaxInt32 - 500)
				}
				ctx := context.Background()
				if i%50 == 49 {
					ctx = ended
				}
				sent, got, err := echoCall(ctx, peer, uint64(caller)<<32|uint64(i))
				switch {
				case err == nil && !bytes.Equal(sent, got):
					crossed.Add(1)
				case err != nil && ctx == ended && errors.Is(err, context.Canceled):
					givenUp.Add(1)
				case err != nil:
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if crossed.Load() != 0 || failed.Load() != 0 || givenUp.Load() == 0 {
		t.Errorf("%d replies crossed, %d calls failed, %d gave up", crossed.Load(), failed.Load(), givenUp.Load())
	}
	if !server.wrapped.Load() {
		t.Error("no sequence id is behind the largest")
	}
	stats := peer.Stats()
	if n := dials.Load(); n > limits.MultiplexedConnections || stats.Shared != int(n) {
		t.Errorf("%d connections were opened, %d are shared", n, stats.Shared)
	}
	if late, extras := int64(stats.LateReplies), server.extras.Load(); late > extras+givenUp.Load() || late < extras-callers || extras == 0 {
		t.Errorf("%d late replies; %d that nobody asked for, %d calls that gave up", late, extras, givenUp.Load())
	}
}

// inOrder answers the calls of a connection, as one that can share it, and notes
// their sequence ids. A call of the id held stays without an answer.
func inOrder(conn net.Conn, note func(sequence int32) (answer bool)) {
	defer conn.Close()
	arrived := []byte(nil)
	for b := make([]byte, 1<<16); ; {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		arrived = append(arrived, b[:n]...)
		for {
			message, used, _, _ := ttheader.Next(arrived, limits.DefaultMessage())
			if used == 0 {
				break
			}
			if note(message.HeaderSequence) {
				_, _ = conn.Write(answered(nil, &message, message.HeaderSequence, []ttheader.Pair{{Key: wire.Capabilities, Value: "mux"}}))
			}
			arrived = arrived[used:]
		}
	}
}

// TestPeer_SequenceIdsWrap: behind the largest comes the smallest, 0 is left out
// because it is for control messages, and so are those of calls that wait still.
func TestPeer_SequenceIdsWrap(t *testing.T) {
	const held = 1000
	var seen []int32
	ended := false
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		listener, err := network.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := listener.Accept(); err == nil {
				inOrder(conn, func(sequence int32) bool {
					seen = append(seen, sequence)
					return sequence != held || ended
				})
			}
		}()
		peer := transport.NewPeer(transport.PoolConfig{
			Dial: func(ctx context.Context) (*eventloop.Conn, error) {
				conn, err := network.Dial(ctx, "tcp", address)
				return eventloop.NewConn(conn, eventloop.Config{}), err
			},
			Protocol: wire.TTHeader, Limits: limits.DefaultMessage(), Connections: 1, Waiting: 10,
		})
		calls := func(count int) {
			for i := range uint64(count) {
				if sent, got, err := echoCall(context.Background(), peer, i); err != nil || !bytes.Equal(sent, got) {
					t.Errorf("a call: % x, %v", got, err)
				}
			}
		}
		calls(1)
		ctx, cancel := context.WithCancel(context.Background())
		peer.SetSequence(held - 1)
		waiting := make(chan error, 1)
		go func() { _, _, err := echoCall(ctx, peer, 7); waiting <- err }()
		synctest.Wait()
		for _, last := range []int32{math.MaxInt32 - 2, -3, held - 2} {
			peer.SetSequence(last)
			calls(4)
		}
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that waited: %v", err)
		}
		peer.SetSequence(held - 1)
		ended = true
		calls(1)
		peer.Close()
		_ = listener.Close()
	})
	want := []int32{1, held,
		math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1,
		-2, -1, 1, 2,
		held - 1, held + 1, held + 2, held + 3,
		held}
	if !slices.Equal(seen, want) {
		t.Errorf("sequence ids %v, want %v", seen, want)
	}
}
