package roundtripkitex_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
)

// TestFastWrite_AllocatesNothing but once where absent fields that have no room behind it
// are more than 128 bytes.
func TestFastWrite_AllocatesNothing(t *testing.T) {
	most := map[string]float64{"leaf": 0, "tree": 0, "absent fields": 1}
	for name, s := range map[string]interface {
		BLength() int
		FastWrite(buf []byte) int
	}{"leaf": &shape.Leaf{Name: "name"}, "absent fields": &own.Wide{}, "tree": &shape.Tree{Right: &shape.Tree{}}} {
		buf := make([]byte, s.BLength())
		n := 0
		if got := testing.AllocsPerRun(20, func() { n = s.FastWrite(buf) }); got > most[name] || n != len(buf) {
			t.Errorf("%s: %v allocations to write %d of %d bytes, want %v", name, got, n, len(buf), most[name])
		}
		size := 0
		if got := testing.AllocsPerRun(20, func() { size = s.BLength() }); got > 0 || size != len(buf) {
			t.Errorf("%s: %v allocations for BLength", name, got)
		}
	}
}
