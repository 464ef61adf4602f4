package eventloop

import (
	"io"
	"strings"
	"testing"
	"unsafe"
)

// TestConn_FitsItsSizeClasses: 10,000 idle connections are 10,000 times these. The
// allocator rounds up to the next class, so a field more may cost 64 bytes. A
// white-box test, because sizes cannot be seen from outside.
func TestConn_FitsItsSizeClasses(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the numbers are for 64 bits")
	}
	for _, test := range []struct {
		name       string
		size, most uintptr
	}{
		{"Conn", unsafe.Sizeof(Conn{}), 352},
		{"served", unsafe.Sizeof(served{}), 112},
		{"socket", unsafe.Sizeof(socket{}), 144},
	} {
		if test.size > test.most {
			t.Errorf("%s takes %d bytes, its class has %d", test.name, test.size, test.most)
		}
	}
}

// TestCombined_KeepsNoLongLists: one write of many pieces must not take memory for
// the life of its connection. A white-box test for the same reason.
func TestCombined_KeepsNoLongLists(t *testing.T) {
	l, _ := unserved(t, Config{})
	a, b := socketPair(t, l)
	c := busyConn(l, a)
	combined := newCombined(c)
	c.outbound.combined.Store(combined)
	pieces := make([][]byte, 10*scratchKept)
	for i := range pieces {
		pieces[i] = []byte("p")
	}
	combined.left.AppendString("left by another")
	if n, err := c.WriteBuffers(pieces); n != int64(len(pieces)) || err != nil {
		t.Fatalf("WriteBuffers = %d, %v", n, err)
	}
	got := make([]byte, len(pieces)+len("left by another"))
	if _, err := io.ReadFull(b, got); err != nil || !strings.HasSuffix(string(got), "left by another") {
		t.Fatalf("read %q, %v", got, err)
	}
	if kept := cap(combined.pieces); kept > scratchKept {
		t.Errorf("a list of %d pieces is kept (limit %d)", kept, scratchKept)
	}
}
