package ttstream_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// TestConn_TellsKitexNothing uses what came from a server that knows no windows.
func TestConn_TellsKitexNothing(t *testing.T) {
	s := newSide(t, ttstream.Config{Client: true, Window: 100})
	s.open("m")
	s.sent()
	for range 50 {
		s.arrive(frame(1, "3", "m", make([]byte, 100)))
	}
	if got := typesOf(t, s.sent()); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

// TestConn_Talk lets two sides of ours do random things on three streams, with bytes on
// the way as long as it comes. What one sends the other receives, in order; neither holds
// more than a window and a message of a stream once both know each other; and what waits
// goes on when there is room.
func TestConn_Talk(t *testing.T) {
	for range 100 {
		seed := rand.Uint64()
		talk(t, seed, rand.New(rand.NewPCG(seed, 2)))
	}
}

const (
	talkWindow  = 500
	talkMessage = 300
)

// talker is a side with what it has still to send, sent and received, by stream.
type talker struct {
	*side
	out  map[int32][][]byte
	got  map[int32][][]byte
	held map[int32][]int
}

func newTalker(s *side) *talker {
	s.keep = true
	return &talker{side: s, out: map[int32][][]byte{}, got: map[int32][][]byte{}, held: map[int32][]int{}}
}

// push sends what there is room for.
func (k *talker) push(id int32) {
	k.t.Helper()
	for len(k.out[id]) > 0 {
		sent, err := k.conn.Send(id, k.out[id][0])
		k.must(err)
		if !sent {
			return
		}
		k.out[id] = k.out[id][1:]
	}
}

// read takes what came.
func (k *talker) read(b []byte) {
	k.t.Helper()
	k.input = append(k.input, b...)
	for {
		event, used, _, err := k.conn.Next(k.input, 0)
		k.must(err)
		if used == 0 && event.Kind == ttstream.EventNone {
			break
		}
		if event.Kind == ttstream.EventReset || event.Kind == ttstream.EventCongested {
			k.t.Fatalf("%s", describe(event))
		}
		if event.Kind == ttstream.EventData {
			id := event.Stream
			k.got[id] = append(k.got[id], bytes.Clone(event.Data))
			k.held[id] = append(k.held[id], len(event.Data))
		}
		k.input = k.input[used:]
	}
	for id, _, ok := k.conn.Writable(); ok; id, _, ok = k.conn.Writable() {
		k.push(id)
	}
}

// use consumes the oldest message that is held.
func (k *talker) use(id int32) {
	if held := k.held[id]; len(held) > 0 {
		k.conn.Consume(id, held[0])
		k.held[id] = held[1:]
	}
}

func talk(t *testing.T, seed uint64, random *rand.Rand) {
	config := ttstream.Config{Window: talkWindow, MessageBytes: talkMessage, BufferBytes: 10 * talkWindow}
	c, s := newPair(t, config, config)
	sides := [2]*talker{newTalker(c), newTalker(s)}
	want := [2]map[int32][][]byte{{}, {}}
	ids := []int32{c.open("a"), c.open("b"), c.open("c")}
	carry := func() {
		x, y := c.sent(), s.sent()
		sides[1].read(x)
		sides[0].read(y)
	}
	carry()
	carry() // the server's window has come
	for step := range 400 {
		from, id := random.IntN(2), ids[random.IntN(len(ids))]
		switch random.IntN(4) {
		case 0:
			message := bytes.Repeat([]byte{byte(step)}, 1+random.IntN(talkMessage))
			want[from][id] = append(want[from][id], message)
			sides[from].out[id] = append(sides[from].out[id], message)
			sides[from].push(id)
		case 1:
			sides[from].use(id)
		default:
			carry()
		}
		for _, side := range sides {
			for id, held := range side.held {
				sum := 0
				for _, n := range held {
					sum += n + 64
				}
				if sum > talkWindow+talkMessage+64 {
					t.Fatalf("seed %d: %d bytes are held of stream %d", seed, sum, id)
				}
			}
		}
	}
	for range 2000 {
		carry()
		for _, side := range sides {
			for _, id := range ids {
				side.use(id)
			}
		}
	}
	for from, side := range sides {
		for _, id := range ids {
			if n := len(side.out[id]); n > 0 {
				t.Fatalf("seed %d: %d messages of stream %d still wait", seed, n, id)
			}
			if got := sides[1-from].got[id]; !bytes.Equal(bytes.Join(got, nil), bytes.Join(want[from][id], nil)) || len(got) != len(want[from][id]) {
				t.Fatalf("seed %d: stream %d: %d messages came, %d were sent", seed, id, len(got), len(want[from][id]))
			}
		}
	}
}
