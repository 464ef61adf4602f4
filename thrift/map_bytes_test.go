package thrift

import (
	"math"
	"runtime"
	"testing"
)

// TestMapBytes_BoundsWhatGoAllocates makes maps of many sizes and compares what
// they really take with what a decoder charges for them.
func TestMapBytes_BoundsWhatGoAllocates(t *testing.T) {
	checkMapBytes(t, "map[int64]int64", func(i int) int64 { return int64(i) }, func(int) int64 { return 0 })
	checkMapBytes(t, "map[int8]struct", func(i int) int16 { return int16(i) }, func(int) [200]byte { return [200]byte{} })
	checkMapBytes(t, "map[struct]bool", func(i int) [150]byte { return [150]byte{byte(i), byte(i >> 8)} }, func(int) bool { return true })
	checkMapBytes(t, "map[string]string", func(i int) string { return names[i] }, func(int) string { return "" })
}

// names are 896 different strings that cost nothing to take.
var names = func() (list [896]string) {
	for i := range list {
		list[i] = string([]byte{byte(i), byte(i >> 8)})
	}
	return list
}()

func checkMapBytes[K comparable, V any](t *testing.T, name string, key func(int) K, value func(int) V) {
	t.Helper()
	for _, n := range []int{0, 1, 7, 8, 9, 14, 15, 28, 29, 56, 57, 112, 113, 224, 225, 448, 449, 895, 896} {
		// The least of several attempts: the runtime allocates for itself too.
		got := int64(math.MaxInt64)
		for range 5 {
			got = min(got, allocated(n, key, value))
		}
		if charged := mapBytes[K, V](n); got > charged {
			t.Errorf("%s with %d entries takes %d bytes, charged are %d", name, n, got, charged)
		}
	}
}

// allocated returns what a map of n entries takes, on average.
func allocated[K comparable, V any](n int, key func(int) K, value func(int) V) int64 {
	const maps = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range maps {
		m := make(map[K]V, n)
		for i := range n {
			m[key(i)] = value(i)
		}
		runtime.KeepAlive(m)
	}
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc-before.TotalAlloc) / maps
}
