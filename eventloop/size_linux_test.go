package eventloop

import (
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
		{"served", unsafe.Sizeof(served{}), 96},
		{"socket", unsafe.Sizeof(socket{}), 144},
	} {
		if test.size > test.most {
			t.Errorf("%s takes %d bytes, its class has %d", test.name, test.size, test.most)
		}
	}
}
