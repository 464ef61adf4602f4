package eventloop_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

// heap returns how many bytes are reachable. Pools keep memory for two
// collections.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func skipWhereChecksTakeMemory(t *testing.T) {
	if assert.Enabled {
		t.Skip("the checks of this build take time and memory of their own")
	}
}

// acknowledge answers each message with one byte.
func acknowledge(conn *eventloop.Conn) error {
	_, err := readFrame(conn.Reader())
	if err == nil {
		conn.Writer().AppendString(".")
	}
	return err
}

func sized(length int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(length)), make([]byte, length)...)
}

// TestMemory_LargeMessagesLeaveNothing is benchmark case G: 100 connections
// carry 4 MiB each and then small messages.
func TestMemory_LargeMessagesLeaveNothing(t *testing.T) {
	skipWhereChecksTakeMemory(t)
	bothNetworks(t, func(t *testing.T, start func(eventloop.Config, eventloop.Handler) *server) {
		const connections = 100
		s := start(eventloop.Config{}, acknowledge)
		clients := make([]net.Conn, connections)
		for i := range clients {
			clients[i] = s.connect()
		}
		exchange := func(message []byte) {
			for _, client := range clients {
				if _, err := client.Write(message); err != nil {
					t.Fatal(err)
				}
				expect(t, client, ".")
			}
		}
		exchange(sized(4 << 20))
		exchange(sized(128))
		// What is kept for the next long messages is not of a connection.
		spare := heap()
		s.DropSpare()
		open := heap()
		if spare -= open; spare > limits.SpareBytes+limits.SpareBytes/8 {
			t.Errorf("%d bytes are kept for other messages", spare)
		}
		for _, client := range clients {
			client.Close()
		}
		s.stop()
		if got := (open - heap()) / connections; got > 6<<10 {
			t.Errorf("an idle connection takes %d bytes of heap", got)
		}
	})
}

// TestMemory_FollowsArrivedBytes is the slow peer of scenario S4: it announces
// much, sends little in two pieces and waits. The naive version makes room for
// what is announced, which happens in different places with handlers on pollers,
// which read into memory of others, and with handlers beside them.
func TestMemory_FollowsArrivedBytes(t *testing.T) {
	skipWhereChecksTakeMemory(t)
	for name, dispatch := range map[string]eventloop.Dispatch{"spawn": eventloop.DispatchSpawn, "inline": eventloop.DispatchInline} {
		t.Run(name, func(t *testing.T) {
			for _, sent := range []int{1, 100, 1000, 10_000, 40_000} {
				announceMuch(t, eventloop.Config{Dispatch: dispatch}, sent)
			}
		})
	}
}

func announceMuch(t *testing.T, config eventloop.Config, sent int) {
	const connections = 200
	message := sized(1 << 20)
	var half, whole atomic.Int64
	s := serve(t, config, func(conn *eventloop.Conn) error {
		err := acknowledge(conn)
		switch conn.Reader().Len() {
		case sent:
			whole.Add(1)
		case sent / 2:
			half.Add(1)
		}
		return err
	})
	// Connections and their goroutines exist before anything is sent.
	clients := make([]net.Conn, connections)
	for i := range clients {
		clients[i] = s.connect()
	}
	eventually(t, "the connections", func() bool { return s.Stats().Open == connections })
	before := heap()
	costs := func(arrived int) {
		factor := 4
		if arrived > 2<<10 { // from there on room is made for what is wanted, at most so much
			factor = 8
		}
		if got, limit := (heap()-before)/connections, int64(factor*arrived+2<<10); got > limit {
			t.Errorf("%d bytes sent: %d bytes kept a connection, want at most %d", arrived, got, limit)
		}
	}
	if sent > 1 {
		for _, client := range clients {
			send(t, client, string(message[:sent/2]))
		}
		eventually(t, "the first piece", func() bool { return half.Load() == connections })
		costs(sent / 2)
	}
	for _, client := range clients {
		send(t, client, string(message[sent/2:sent]))
	}
	eventually(t, "the bytes", func() bool { return whole.Load() == connections })
	costs(sent)
	s.stop()
}

// TestMemory_SlowReader is scenario S6: a peer asks for 1 MiB again and again
// and reads nothing. The server must stop taking its requests, serve others,
// and close it when the stall limit has passed.
func TestMemory_SlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := bytes.Repeat([]byte{'x'}, 1<<20)
		var handled atomic.Int64
		s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{}, func(conn *eventloop.Conn) error {
			request, err := conn.Reader().Next(1)
			if err != nil {
				return err
			}
			if request[0] == 'p' {
				conn.Writer().AppendString("pong")
				return nil
			}
			handled.Add(1)
			conn.Writer().Insert(reply)
			return nil
		})
		greedy, other := s.connect(), s.connect()
		begin := time.Now()
		go greedy.Write(bytes.Repeat([]byte{'r'}, 1<<20))
		synctest.Wait()
		if got := handled.Load(); got != 1 {
			t.Errorf("%d requests were handled, want 1", got)
		}
		for range 30 {
			<-time.After(time.Second)
			send(t, other, "p")
			expect(t, other, "pong")
		}
		if err := receive(t, s.closed, "OnClose"); err == nil {
			t.Error("OnClose got no error")
		}
		if got := time.Since(begin); got < 30*time.Second || got > 38*time.Second {
			t.Errorf("closed after %v, want 30 s and at most a quarter more", got)
		}
	})
}

// TestAllocs_Echo counts for the whole process: a request and its reply on an
// established connection allocate nothing.
func TestAllocs_Echo(t *testing.T) {
	skipWhereChecksTakeMemory(t)
	for _, length := range []int{128, 1 << 10, 11 << 10} {
		s := serve(t, eventloop.Config{}, echoLines)
		client := s.connect()
		line := append(bytes.Repeat([]byte{'x'}, length-1), '\n')
		reply := make([]byte, length)
		exchange := func() {
			if _, err := client.Write(line); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(client, reply); err != nil {
				t.Fatal(err)
			}
		}
		exchange()
		if got := testing.AllocsPerRun(500, exchange); got > 0.5 {
			t.Errorf("%d bytes: %v allocations a request", length, got)
		}
	}
}

// source is a socket that has as many bytes for each read as it is asked for, most at
// the most.
type source struct {
	net.Conn
	most, reads int
}

func (s *source) Read(p []byte) (int, error) {
	s.reads++
	return min(len(p), s.most), nil
}

// TestDialed_ReadsFollowWhatArrives: a connection on which much arrives at once reads
// it at once, and one with a short message now and then waits in little memory. None has
// more than it may keep, which it would take anew whenever it had nothing to read.
func TestDialed_ReadsFollowWhatArrives(t *testing.T) {
	const total, short = 4 << 20, 1 << 10
	for _, test := range []struct {
		name    string
		message int
		most    int
		reads   int
		memory  int
	}{
		{"a stream", short, math.MaxInt, total/(64<<10) + 8, 64 << 10},
		{"short messages", short, short, total / short, 2 << 10},
		{"a stream of messages of no round length", 10_000, math.MaxInt, total/(48<<10) + 8, 64 << 10},
	} {
		socket := &source{most: test.most}
		conn := eventloop.NewConn(socket, eventloop.Config{})
		reader := conn.Reader()
		memory := 0
		for range total / test.message {
			if err := reader.Skip(test.message); err != nil {
				t.Fatal(err)
			}
			memory = max(memory, reader.Memory())
			reader.Shrink()
		}
		if socket.reads > test.reads {
			t.Errorf("%s: %d reads for %d bytes, want at most %d", test.name, socket.reads, total, test.reads)
		}
		if memory > test.memory {
			t.Errorf("%s: the connection took %d bytes, want at most %d", test.name, memory, test.memory)
		}
	}
}
