package limits

import (
	"math"
	"runtime/debug"
)

// BufferedBytes returns how many bytes of messages a server of this process may
// hold for its peers.
func BufferedBytes() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return max(limit/BufferedShare, 1)
	}
	return BufferedBytesMax
}
