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

// madeMap is MakeMap where there is as much memory as is asked for, behind the first maps of
// a message.
func madeMap[K comparable, V any](r *Reader, n int) map[K]V {
	r.budget, r.singleMaps = math.MaxInt64/2, slabSingles
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
		if isSmall(entries, "key", "value") {
			t.Errorf("%v looks as if it were the map that was asked for", entries)
		}
	}
	if !isSmall(map[string]string{"key": "value"}, "key", "value") {
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
	if made.header.used != mapGroupSlots || made.header.tables != 0 || made.header.group != unsafe.Pointer(&made.group) {
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
	r := Reader{singleMaps: slabSingles}
	if sharesPiece[[129]byte, int](&r, 1) || sharesPiece[int, [129]byte](&r, 1) || sharesPiece[int, int](&r, 0) || sharesPiece[int, int](&r, 9) {
		t.Error("a map shares a group that needs more than one, or slots of another kind")
	}
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
	if most := float64(len(kept)/mapsOfPiece + 10); got > most {
		t.Errorf("%v allocations for %d maps, want at most %v", got, len(kept), most)
	}
	for i := range kept {
		if len(kept[i]) != 2 || kept[i]["a"] != "c" || kept[i]["b"] != "d" {
			t.Fatalf("map %d is %v", i, kept[i])
		}
	}
}

// TestSmallMap_FirstOnesAreTheRuntimes: what is kept of a message of a few maps keeps nothing
// else.
func TestSmallMap_FirstOnesAreTheRuntimes(t *testing.T) {
	r := Reader{budget: math.MaxInt64}
	for i := range slabSingles {
		if MakeMap[string, string](&r, 0, 2, nil); r.memory != nil {
			t.Fatalf("map %d of a message has a piece", i)
		}
	}
	if MakeMap[string, string](&r, 0, 2, nil); (r.memory != nil) != hasSmallMaps {
		t.Error("the next one is not in a piece")
	}
}

// TestSmallMap_KeepsLittle: one map that is kept of many keeps those of its piece, and no
// others; one that has grown keeps what it had before as well.
func TestSmallMap_KeepsLittle(t *testing.T) {
	const maps = 1000
	freed := make(chan struct{}, 20*maps)
	value := func() *[64]byte {
		v := new([64]byte)
		runtime.AddCleanup(v, func(struct{}) { freed <- struct{}{} }, struct{}{})
		return v
	}
	kept := func(use func(all []map[int]*[64]byte) map[int]*[64]byte, most int) (entries map[int]*[64]byte, alive int) {
		var r Reader
		all := make([]map[int]*[64]byte, maps)
		for i := range all {
			all[i] = madeMap[int, *[64]byte](&r, 1)
			all[i][0] = value()
		}
		entries = use(all)
		all, r = nil, Reader{}
		for range 100 {
			if maps-len(freed) > most {
				runtime.GC()
				runtime.Gosched() // cleanups have a goroutine of their own
			}
		}
		alive = maps - len(freed)
		for range len(freed) {
			<-freed
		}
		return entries, alive
	}
	for name, test := range map[string]struct {
		use  func(all []map[int]*[64]byte) map[int]*[64]byte
		most int
	}{
		"one of many": {func(all []map[int]*[64]byte) map[int]*[64]byte { return all[500] }, mapsOfPiece},
		"one that has grown, and is empty": {func(all []map[int]*[64]byte) map[int]*[64]byte {
			for i := range 100 {
				all[500][i+1] = nil
			}
			clear(all[500])
			return all[500]
		}, mapsOfPiece},
	} {
		t.Run(name, func(t *testing.T) {
			entries, alive := kept(test.use, test.most)
			if alive > test.most {
				t.Errorf("%d of %d values are kept, want at most %d", alive, maps, test.most)
			}
			runtime.KeepAlive(entries)
		})
	}
}

// TestSmallMap_OfATree: maps near the root are in the pieces of leaves, so that a leaf may
// keep most of a tree. ADR-0075 says so; what this finds is how it is, and that a clone keeps
// nothing.
func TestSmallMap_OfATree(t *testing.T) {
	if !hasSmallMaps {
		t.Skipf("maps of %s for %s are left to the runtime", runtime.Version(), runtime.GOARCH)
	}
	type node struct {
		inner map[int]*node
		text  *[64]byte
	}
	const depth = 10
	const all = 1<<depth - 1
	freed := make(chan struct{}, all)
	var leaf, cloned map[int]*node
	grown := 0
	var r Reader
	var grow func(depth int) *node
	grow = func(depth int) *node {
		grown++
		n := &node{text: new([64]byte)}
		runtime.AddCleanup(n.text, func(struct{}) { freed <- struct{}{} }, struct{}{})
		n.inner = madeMap[int, *node](&r, 2)
		if depth > 1 {
			n.inner[0], n.inner[1] = grow(depth-1), grow(depth-1)
		} else if grown > all/2 && leaf == nil { // in the piece of the root's second child
			leaf = n.inner
		}
		return n
	}
	wait := func(least int) int {
		for range 100 {
			if len(freed) < least {
				runtime.GC()
				runtime.Gosched() // cleanups have a goroutine of their own
			}
		}
		return len(freed)
	}
	grow(depth)
	r = Reader{}
	cloned = maps.Clone(leaf)
	if alive := all - wait(all); alive < all/4 {
		t.Errorf("a leaf keeps %d of %d nodes: ADR-0075 says most of them", alive, all)
	}
	runtime.KeepAlive(leaf)
	leaf = nil
	if got := wait(all); got < all {
		t.Errorf("a clone of a leaf keeps %d of %d nodes", all-got, all)
	}
	runtime.KeepAlive(cloned)
}

// TestSmallMap_IsCharged: a message that may take no memory gets none.
func TestSmallMap_IsCharged(t *testing.T) {
	for _, budget := range []int64{0, mapHeaderBytes} {
		r := Reader{budget: budget, singleMaps: slabSingles}
		entries := MakeMap[string, string](&r, 0, 2, nil)
		if r.err == nil {
			t.Errorf("with %d bytes a map was made", budget)
		}
		entries["key"] = "value"
		if entries["key"] != "value" {
			t.Errorf("generated code cannot go on: %v", entries)
		}
	}
}

// TestSmallMap_OfManyKinds leaves the places for kinds of structs to structs.
func TestSmallMap_OfManyKinds(t *testing.T) {
	r := Reader{budget: math.MaxInt64, singleMaps: slabSingles}
	madeMap[int8, int8](&r, 1)
	madeMap[int16, int8](&r, 1)
	madeMap[int32, int8](&r, 1)
	madeMap[int64, int8](&r, 1)
	madeMap[uint8, int8](&r, 1)
	madeMap[uint16, int8](&r, 1)
	madeMap[uint32, int8](&r, 1)
	madeMap[uint64, int8](&r, 1)
	if entries := madeMap[string, int8](&r, 1); entries == nil {
		t.Error("there is no map")
	}
	if slabOf[Opt[string]](&r) == nil {
		t.Error("maps have taken the places of structs")
	}
}
