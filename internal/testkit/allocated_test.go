package testkit_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestAllocated_IsTheLeastOfFive(t *testing.T) {
	var kept []byte
	times := 0
	disturbed := func() {
		times++
		kept = make([]byte, max(1, 3-times)<<20)
	}
	const noise = 64 << 10
	if got := testkit.Allocated(3<<19, disturbed); got < 1<<20 || got > 1<<20+noise || times != 2 {
		t.Errorf("%d bytes after %d attempts, want those of the second", got, times)
	}
	times = 0
	if got := testkit.Allocated(0, disturbed); got < 1<<20 || got > 1<<20+noise || times != 5 {
		t.Errorf("%d bytes after %d attempts, want the least of five", got, times)
	}
	_ = kept
}
