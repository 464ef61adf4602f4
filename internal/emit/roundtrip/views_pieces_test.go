package roundtrip_test

import (
	"bytes"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestView_PiecesAreTheMessage has long parts in front of what is changed and behind it: they
// are where they were, what is short is copied together, and both are the message.
func TestView_PiecesAreTheMessage(t *testing.T) {
	long := func(n int) []string { return []string{strings.Repeat("x", n), strings.Repeat("y", n)} }
	for name, test := range map[string]struct {
		n             int
		change        func(v *views.ContainersView)
		pieces, least int // how many pieces, and how many bytes of them are where they were
	}{
		"short":                     {10, func(v *views.ContainersView) { v.SetInts([]int32{1}) }, 1, 0},
		"as it came":                {limits.LinkedPartBytes, func(*views.ContainersView) {}, 1, 2 * limits.LinkedPartBytes},
		"a little is changed":       {limits.LinkedPartBytes, func(v *views.ContainersView) { v.SetInts([]int32{1, 2}) }, 2, 2 * limits.LinkedPartBytes},
		"what is long goes":         {limits.LinkedPartBytes, func(v *views.ContainersView) { v.SetStrings(nil) }, 1, 0},
		"an element that is edited": {limits.LinkedPartBytes, func(v *views.ContainersView) { v.EditLeavesAt(0, func(leaf *views.LeafView) { leaf.SetNumber(9) }) }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := views.NewContainers()
			s.Ints, s.Strings, s.Leaves = []int32{3, 4, 5}, long(test.n), []views.Leaf{{Number: 1}}
			message := marshal(t, s)
			var v views.ContainersView
			if err := v.Load(message); err != nil {
				t.Fatal(err)
			}
			test.change(&v)
			want, err := v.AppendTo(nil)
			if err != nil {
				t.Fatal(err)
			}
			memory := make([]byte, 0, 2*len(message))
			pieces, copied, err := v.AppendPieces(nil, memory)
			if err != nil || !bytes.Equal(bytes.Join(pieces, nil), want) {
				t.Fatalf("%d pieces, %v: they are not the message", len(pieces), err)
			}
			if len(pieces) > test.pieces+1 || len(pieces) < test.pieces {
				t.Errorf("%d pieces, want %d and one more at most", len(pieces), test.pieces)
			}
			if inPlace := len(want) - len(copied); inPlace < test.least {
				t.Errorf("%d of %d bytes are where they were, want %d", inPlace, len(want), test.least)
			}
			for i, piece := range pieces {
				if cap(piece) != len(piece) {
					t.Errorf("piece %d can be appended to: that would write over what follows", i)
				}
			}
		})
	}
}

// TestView_PiecesOfWhatCannotBeWritten are none, and nothing was added.
func TestView_PiecesOfWhatCannotBeWritten(t *testing.T) {
	var place other.PlaceView // without the name that it requires
	pieces, memory, err := place.AppendPieces([][]byte{{1}}, []byte("before"))
	if err == nil || len(pieces) != 1 || string(memory) != "before" {
		t.Errorf("%d pieces, %q, %v", len(pieces), memory, err)
	}
	if _, err := thrift.Marshal(&place); err == nil {
		t.Error("it can be written")
	}
}

// TestView_PiecesOfWhatIsLent are copies: whoever has them may have them for longer than the
// message is lent.
func TestView_PiecesOfWhatIsLent(t *testing.T) {
	message := marshal(t, orderOf("north", 500))
	if len(message) < 2*limits.LinkedPartBytes || len(message) >= limits.LinkedStringBytes {
		t.Fatalf("%d bytes are not lent, or have no long part", len(message))
	}
	var order viewmethods.OrderView
	end, err := readLent(&order, message)
	if err != nil {
		t.Fatal(err)
	}
	order.SetID(8)
	want, err := order.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	pieces, _, err := order.AppendPieces(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	end()
	for i := range message {
		message[i] = 0xa5 // the next request
	}
	if !bytes.Equal(bytes.Join(pieces, nil), want) {
		t.Error("the pieces have changed with the memory that was lent")
	}
}

// TestNumbers_AtPanicsBeyondTheEnd also where the offset of an element is no number any more.
func TestNumbers_AtPanicsBeyondTheEnd(t *testing.T) {
	s := views.NewContainers()
	s.Longs, s.Ints = []int64{1, 2}, []int32{3}
	var v views.ContainersView
	if err := v.Load(marshal(t, s)); err != nil {
		t.Fatal(err)
	}
	longs, ints := v.Longs(), v.Ints()
	if longs.At(1) != 2 || ints.At(0) != 3 {
		t.Errorf("there are %d and %d", longs.At(1), ints.At(0))
	}
	for _, i := range []int{-1, 2, math.MaxInt, math.MinInt, math.MaxInt/8 + 1, math.MinInt / 8, math.MaxInt/4 + 1} {
		for name, at := range map[string]func(){"longs": func() { longs.At(i) }, "ints": func() { ints.At(i) }} {
			if text := panicOf(at); !strings.Contains(text, "elements") {
				t.Errorf("%s: element %d: %q", name, i, text)
			}
		}
	}
}

// TestView_PiecesAreSent does what the guide shows.
func TestView_PiecesAreSent(t *testing.T) {
	message := marshal(t, orderOf("north", 1000))
	var order viewmethods.OrderView
	if err := order.Load(message); err != nil {
		t.Fatal(err)
	}
	order.SetID(8)
	want, err := order.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, peer := net.Pipe()
	sent := make(chan error, 1)
	go func() {
		sent <- sendPieces(conn, &order, &order)
		_ = conn.Close()
	}()
	if got, err := io.ReadAll(peer); err != nil || !bytes.Equal(got, append(want, want...)) {
		t.Errorf("%d bytes came, %v, want %d", len(got), err, 2*len(want))
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func sendPieces(conn net.Conn, orders ...*viewmethods.OrderView) (err error) {
	var pieces [][]byte
	var memory []byte
	for _, order := range orders {
		pieces, memory, err = order.AppendPieces(pieces[:0], memory[:0])
		if err != nil {
			return err
		}
		buffers := net.Buffers(pieces)
		_, err = buffers.WriteTo(conn) // one vectored write
		if err != nil {
			return err
		}
	}
	return nil
}
