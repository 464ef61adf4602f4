package limits

import (
	"math"
	"runtime/debug"
)

// Or returns fallback for 0, value if it is positive, and off if it is
// negative: the rule of all configuration structs.
func Or[T ~int | ~int64](value, fallback, off T) T {
	switch {
	case value == 0:
		return fallback
	case value < 0:
		return off
	default:
		return value
	}
}

// BufferedBytes returns how many bytes of messages a server of this process may
// hold for its peers.
func BufferedBytes() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return max(limit/BufferedShare, 1)
	}
	return BufferedBytesMax
}
