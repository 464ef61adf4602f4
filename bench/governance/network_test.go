package governance_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/governance"
)

// request is a framed call of echo with one text.
func request() []byte {
	body := slices.Concat(
		[]byte{0x80, 0x01, 0, 1}, []byte{0, 0, 0, 4}, []byte("echo"), []byte{0, 0, 0, 9}, // call 9 of echo
		[]byte{12, 0, 1}, []byte{11, 0, 2, 0, 0, 0, 2}, []byte("hi"), []byte{0, 0})
	return append([]byte{0, 0, 0, byte(len(body))}, body...)
}

func reply() []byte {
	want := request()
	want[7], want[22] = 2, 0 // a reply, whose field is the result
	return want
}

func TestNetwork_AnswersWithTheRequest(t *testing.T) {
	for name, pieces := range map[string][][]byte{
		"whole":  {request()},
		"pieces": {request()[:2], request()[2:20], request()[20:]},
	} {
		network := governance.NewNetwork()
		conn := network.Dial("a")
		for _, piece := range pieces {
			if n, err := conn.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("%s: wrote %d, %v", name, n, err)
			}
		}
		got := make([]byte, len(request()))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, reply()) {
			t.Errorf("%s: %v, %x\nwant %x", name, err, got, reply())
		}
		if calls := network.Calls(); calls["a"] != 1 || len(calls) != 1 {
			t.Errorf("%s: calls %v, want one to a", name, calls)
		}
		if n, err := conn.Read(got); n != 0 || err == nil {
			t.Errorf("%s: a read without a request returns %d, %v", name, n, err)
		}
	}
}

func TestNetwork_RefusesWhatIsNoCallOfEcho(t *testing.T) {
	answer, long, name, empty := request(), request(), request(), []byte{0, 0, 0, 0}
	answer[7] = 2
	long = append(long, 0)
	name[8] = 0xff
	for what, message := range map[string][]byte{"an answer": answer, "two at once": long, "a long name": name, "nothing": empty} {
		if _, err := governance.NewNetwork().Dial("a").Write(message); err == nil {
			t.Errorf("%s was answered", what)
		}
	}
}

func TestNetwork_ConnectionsEnd(t *testing.T) {
	network := governance.NewNetwork()
	conn := network.Dial("a")
	network.Broken = true
	if _, err := conn.Write(request()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 8)); !errors.Is(err, io.EOF) {
		t.Errorf("a broken connection ends with %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Write(request()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed connection ends with %v", err)
	}
}

func TestReplaced_ChangesOneInAHundred(t *testing.T) {
	before := governance.Addresses(0, governance.UpdateInstances)
	for next := governance.UpdateInstances; next < 3*governance.UpdateInstances; next += governance.UpdateChanged {
		after := governance.Replaced(before, next)
		changed, seen := 0, map[string]bool{}
		for i := range after {
			if seen[after[i]] = true; after[i] != before[i] {
				changed++
			}
		}
		if changed != governance.UpdateChanged || len(seen) != governance.UpdateInstances {
			t.Fatalf("%d of %d addresses have changed, %d are different; want %d", changed, len(after), len(seen), governance.UpdateChanged)
		}
		before = after
	}
}
