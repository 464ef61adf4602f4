package testkit

import (
	"math"
	"runtime"
)

// Allocated returns how many bytes f allocates, garbage included: at most five attempts,
// until one stays within enough, and the least of them. Other goroutines of the process
// allocate meanwhile, and some libraries make their tables when they are used first.
// Nothing that f changed may make another attempt cheaper.
func Allocated(enough int64, f func()) int64 {
	least := int64(math.MaxInt64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if least = min(least, int64(after.TotalAlloc-before.TotalAlloc)); least <= enough {
			break
		}
	}
	return least
}
