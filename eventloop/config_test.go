package eventloop

import (
	"math"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestConnectionsFor_LeavesTheReserve is a white-box test: few of these limits
// can be given to a process.
func TestConnectionsFor_LeavesTheReserve(t *testing.T) {
	const reserve, percent = limits.ConnectionsReserve, limits.ConnectionsPercent
	for descriptors, want := range map[uint64]int{
		0: 1, reserve: 1, reserve + 1: 1,
		reserve + 100:     percent,
		reserve + 199:     99*percent/100 + percent,
		reserve + 100_000: 1_000 * percent,
		math.MaxUint64:    math.MaxInt,
	} {
		if got := connectionsFor(descriptors); got != want {
			t.Errorf("connectionsFor(%d) = %d, want %d", descriptors, got, want)
		}
	}
}
