package thrift

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"
)

// madeMap is MakeMap where there is as much memory as is asked for.
func madeMap[K comparable, V any](r *Reader, n int) map[K]V {
	r.budget = math.MaxInt64 / 2
	return MakeMap[K, V](r, 0, n, nil)
}

// TestSmallMap_IsKnownHere: a toolchain whose maps are others makes decoding slower, and
// nobody would notice.
func TestSmallMap_IsKnownHere(t *testing.T) {
	if !knownMapLayout {
		t.Skipf("maps of %s for %s are left to the runtime", runtime.Version(), runtime.GOARCH)
	}
	if !hasSmallMaps {
		t.Fatalf("maps of %s are not what map_layout.go says", runtime.Version())
	}
}

// TestSmallMap_LooksAtMaps: whatever is not one small map is refused.
func TestSmallMap_LooksAtMaps(t *testing.T) {
	if !knownMapLayout {
		t.Skipf("maps of %s for %s are left to the runtime", runtime.Version(), runtime.GOARCH)
	}
	many := map[string]string{"key": "value"}
	for i := range 20 {
		many[fmt.Sprint(i)] = ""
	}
	for _, entries := range []map[string]string{nil, {}, {"key": "other"}, {"other": "value"}, {"key": "value", "more": ""}, many} {
		if looksSmall(entries) {
			t.Errorf("%v looks as if it were the map that was asked for", entries)
		}
	}
	if !looksSmall(map[string]string{"key": "value"}) {
		t.Error("the map that was asked for does not look like it")
	}
}

// TestSmallMap_IsWhatTheRuntimeHas compares each slot that the runtime fills with where
// smallMap has it, and what is in maps after random changes with what is in those of the
// runtime, up to sizes where they have become tables.
func TestSmallMap_IsWhatTheRuntimeHas(t *testing.T) {
	if !hasSmallMaps {
		t.Skipf("maps of %s for %s are left to the runtime", runtime.Version(), runtime.GOARCH)
	}
	// Collections at any moment find pointers that are not where they are said to be.
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	number := func(i int) int64 { return int64(i) }
	text := func(i int) string { return fmt.Sprint("text ", i) }
	pointer := func(i int) *string { s := text(i); return &s }
	checkSmallMap(t, text, text)
	checkSmallMap(t, text, pointer)
	checkSmallMap(t, text, func(i int) []string { return []string{text(i)} })
	checkSmallMap(t, text, func(i int) map[string]string { return map[string]string{text(i): text(i)} })
	checkSmallMap(t, text, func(int) struct{} { return struct{}{} })
	checkSmallMap(t, text, func(i int) any { return i })
	checkSmallMap(t, number, func(i int) bool { return i%2 == 0 })
	checkSmallMap(t, number, number)
	checkSmallMap(t, func(i int) int32 { return int32(i) }, func(i int) int32 { return int32(-i) })
	checkSmallMap(t, func(i int) int8 { return int8(i) }, func(i int) int16 { return int16(i) })
	checkSmallMap(t, func(i int) float64 { return float64(i) / 3 }, text)
	checkSmallMap(t, func(i int) [128]byte { return [128]byte{byte(i)} }, func(i int) [8]string { return [8]string{text(i)} })
	type key struct {
		name  string
		index int16
	}
	checkSmallMap(t, func(i int) key { return key{text(i), int16(i)} }, func(i int) Opt[string] { return Some(text(i)) })
}

func checkSmallMap[K comparable, V any](t *testing.T, key func(int) K, value func(int) V) {
	t.Helper()
	var r Reader
	t.Run(fmt.Sprintf("%T", map[K]V(nil)), func(t *testing.T) {
		for n := 1; n <= mapGroupSlots; n++ {
			if !fitsSmallMap[K, V](n) {
				t.Fatalf("%d entries do not fit", n)
			}
			checkSlots(t, madeMap[K, V](&r, n), key, value)
		}
		for seed := range uint64(40) {
			random := rand.New(rand.NewPCG(seed, 1))
			checkChanges(t, random, madeMap[K, V](&r, 1+random.IntN(mapGroupSlots)), key, value)
		}
	})
}

// checkSlots fills a map and looks where its entries are.
func checkSlots[K comparable, V any](t *testing.T, entries map[K]V, key func(int) K, value func(int) V) {
	t.Helper()
	for i := range mapGroupSlots {
		entries[key(i)] = value(i)
	}
	made := *(**smallMap[K, V])(unsafe.Pointer(&entries))
	if made.header.used != mapGroupSlots || made.header.tables != 0 || made.header.groups != unsafe.Pointer(&made.group) {
		t.Errorf("the header is %+v", made.header)
	}
	for i, slot := range made.group.slots {
		if slot.key != key(i) || !reflect.DeepEqual(slot.value, value(i)) {
			t.Errorf("slot %d has %v and %v, want %v and %v", i, slot.key, slot.value, key(i), value(i))
		}
	}
}

// checkChanges makes the same changes to two maps and compares them, also as a clone.
func checkChanges[K comparable, V any](t *testing.T, random *rand.Rand, entries map[K]V, key func(int) K, value func(int) V) {
	t.Helper()
	want := map[K]V{}
	most := []int{4, mapGroupSlots, mapGroupSlots + 1, 100}[random.IntN(4)]
	for range 3 * most {
		k := random.IntN(most)
		switch random.IntN(20) {
		case 0:
			clear(entries)
			clear(want)
		case 1:
			entries = maps.Clone(entries)
		case 2, 3, 4, 5:
			delete(entries, key(k))
			delete(want, key(k))
		default:
			v := value(random.IntN(100))
			entries[key(k)], want[key(k)] = v, v
		}
		if !reflect.DeepEqual(entries, want) {
			t.Fatalf("%v, want %v", entries, want)
		}
	}
	seen := 0
	for k, v := range entries {
		if !reflect.DeepEqual(v, want[k]) {
			t.Errorf("%v: %v, want %v", k, v, want[k])
		}
		delete(entries, k)
		seen++
	}
	if seen != len(want) || len(entries) != 0 {
		t.Errorf("%d entries came, %d are left, want %d and none", seen, len(entries), len(want))
	}
}

// TestSmallMap_KeysThatAreNotThemselves: each NaN is an entry of its own.
func TestSmallMap_KeysThatAreNotThemselves(t *testing.T) {
	var r Reader
	entries := madeMap[float64, int](&r, 3)
	for i := range 12 {
		entries[math.NaN()] = i
	}
	if len(entries) != 12 {
		t.Errorf("%d entries, want 12", len(entries))
	}
}

// TestSmallMap_LongPartsAreElsewhere: Go keeps what is longer than a slot apart.
func TestSmallMap_LongPartsAreElsewhere(t *testing.T) {
	if fitsSmallMap[[129]byte, int](1) || fitsSmallMap[int, [129]byte](1) || fitsSmallMap[int, int](0) || fitsSmallMap[int, int](9) {
		t.Error("a map that is no small map fits")
	}
	var r Reader
	long := madeMap[[129]byte, [129]byte](&r, 2)
	long[[129]byte{128: 1}] = [129]byte{128: 2}
	if got := long[[129]byte{128: 1}]; got[128] != 2 {
		t.Errorf("the value is %v", got)
	}
}

// TestSmallMap_SharesPieces: many maps take few allocations.
func TestSmallMap_SharesPieces(t *testing.T) {
	if !hasSmallMaps {
		t.Skipf("maps of %s for %s are left to the runtime", runtime.Version(), runtime.GOARCH)
	}
	kept := make([]map[string]string, 1000)
	got := testing.AllocsPerRun(10, func() {
		var r Reader
		for i := range kept {
			kept[i] = madeMap[string, string](&r, 2)
			kept[i]["a"], kept[i]["b"] = "c", "d"
		}
	})
	if got > 24 {
		t.Errorf("%v allocations for %d maps, want at most 24", got, len(kept))
	}
	for i := range kept {
		if len(kept[i]) != 2 || kept[i]["a"] != "c" || kept[i]["b"] != "d" {
			t.Fatalf("map %d is %v", i, kept[i])
		}
	}
}

// TestSmallMap_IsCharged: a message that may take no memory gets none.
func TestSmallMap_IsCharged(t *testing.T) {
	var r Reader
	entries := MakeMap[string, string](&r, 0, 2, nil)
	if r.err == nil {
		t.Error("a map was made of nothing")
	}
	entries["key"] = "value"
	if entries["key"] != "value" {
		t.Errorf("generated code cannot go on: %v", entries)
	}
}
