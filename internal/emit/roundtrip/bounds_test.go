package roundtrip_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/bounds/golden/bounds"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// container appends a container of n elements that are the same bytes.
func container(field string, n int, element string) []byte {
	b := binary.BigEndian.AppendUint32([]byte(field), uint32(n))
	return append(append(b, strings.Repeat(element, n)...), 0)
}

// TestBounds_StructsAreCharged has structs of one byte on the wire, some of which are small
// in Go, but what a new one holds is not. Decoding many of them must not take more than a
// message of that length may, and that it is refused must not come after the fact.
func TestBounds_StructsAreCharged(t *testing.T) {
	entries := func(field string, n int, key func(i int) string) []byte {
		b := binary.BigEndian.AppendUint32([]byte(field), uint32(n))
		for i := range n {
			b = append(append(b, key(i)...), 0)
		}
		return append(b, 0)
	}
	number := func(i int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(i))) }
	const n = 20000
	for name, message := range map[string][]byte{
		"list":          container("\x0f\x00\x01\x0c", n, "\x00"),
		"values":        entries("\x0d\x00\x02\x08\x0c", n, number),
		"large values":  entries("\x0d\x00\x0c\x08\x0c", n, number),
		"pairs":         entries("\x0d\x00\x03\x0f\x0c", n, func(int) string { return "\x08\x00\x00\x00\x00" }),
		"repeated":      append([]byte(strings.Repeat("\x0c\x00\x04\x00", n)), 0),
		"optional":      append([]byte(strings.Repeat("\x0c\x00\x05\x00", n)), 0),
		"large":         append([]byte(strings.Repeat("\x0c\x00\x07\x00", n)), 0),
		"within others": container("\x0f\x00\x06\x0c", n, "\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			const refused = 16 << 10 // the struct that was too much, and the error
			most := limits.DefaultMessage().DecodeBytes(len(message)) + refused
			if got := testkit.Allocated(most, func() { err = thrift.Unmarshal(message, &bounds.Presets{}) }); got > most {
				t.Errorf("%d bytes allocated for a message of %d (limit %d): %v", got, len(message), most, err)
			}
		})
	}
	for n, want := range map[int]bool{20: true, n: false} {
		received := new(bounds.Presets)
		err := thrift.Unmarshal(entries("\x0d\x00\x0c\x08\x0c", n, number), received)
		if (err == nil) != want || want && (len(received.LargeByNumber) != n || *received.LargeByNumber[1] != bounds.Large{}) {
			t.Errorf("a map of %d long structs arrived with %d: %v", n, len(received.LargeByNumber), err)
		}
	}
	few := container("\x0f\x00\x01\x0c", 20, "\x00")
	if received := new(bounds.Presets); thrift.Unmarshal(few, received) != nil || len(received.List) != 20 || len(received.List[19].Sizes) != 9 {
		t.Errorf("20 structs with defaults arrived as %v", received)
	}
}

// TestBounds_ContainersTakeWhatTheyAreChargedFor has containers of elements that are as
// dense as a message may have them, and long ones at that.
func TestBounds_ContainersTakeWhatTheyAreChargedFor(t *testing.T) {
	for _, n := range []int{1000, 100_000} {
		for name, message := range map[string][]byte{
			"structs": container("\x0f\x00\x08\x0c", n, "\x00"),
			"lists":   container("\x0f\x00\x09\x0f", n, "\x08\x00\x00\x00\x00"),
			"pairs":   container("\x0d\x00\x0a\x0f\x02", n, "\x08\x00\x00\x00\x00\x01"),
			"binary":  container("\x0f\x00\x0b\x0b", n, "\x00\x00\x00\x00"),
		} {
			var received *bounds.Presets
			var err error
			most := limits.DefaultMessage().DecodeBytes(len(message))
			got := testkit.Allocated(most, func() {
				received = new(bounds.Presets)
				err = thrift.Unmarshal(message, received)
			})
			if err != nil || got > most {
				t.Errorf("%d %s: %d bytes allocated for a message of %d (limit %d), %v", n, name, got, len(message), most, err)
			}
			if len(received.Lines)+len(received.Rows)+len(received.Flags)+len(received.Blobs) != n {
				t.Errorf("%d %s: not all arrived", n, name)
			}
		}
	}
}

// TestBounds_JSONOfValuesThatContainThemselves: encoding/json finds a cycle only where no
// type of it has a method of its own, and the end of the stack ends the process.
func TestBounds_JSONOfValuesThatContainThemselves(t *testing.T) {
	for name, loop := range switchLoops() {
		_, err := json.Marshal(loop)
		wantError(t, err, "bounds.Switch", fmt.Sprintf("deeper than %d", limits.JSONDepth))
		if err == nil {
			t.Error(name)
		}
	}
}

// switchLoops returns values that contain themselves in each way that there is.
func switchLoops() map[string]*bounds.Switch {
	direct, through, list, twice, pairs := &bounds.Switch{}, &bounds.Switch{}, &bounds.Switch{}, &bounds.Switch{}, &bounds.Switch{}
	direct.Other = direct
	through.Next = map[bool]*bounds.Switch{}
	through.Next[true] = &bounds.Switch{Next: through.Next}
	list.List = make([]bounds.Switch, 2)
	list.List[0].List, list.List[1].List = list.List, list.List
	twice.Other, twice.List = twice, []bounds.Switch{{Other: twice}}
	pairs.Pairs = []thrift.Pair[[]bool, *bounds.Switch]{{Value: pairs}}
	return map[string]*bounds.Switch{"pointer": direct, "map": through, "list": list, "twice": twice, "pairs": pairs}
}

// TestBounds_ValuesThatContainThemselvesAreNotWritten: they end at the limit for nesting,
// and what they wrote until then is not kept. The other methods end as well.
func TestBounds_ValuesThatContainThemselvesAreNotWritten(t *testing.T) {
	values := map[string]sized{}
	for name, loop := range loops() {
		values["Node, "+name] = loop
	}
	for name, loop := range switchLoops() {
		values["Switch, "+name] = loop
	}
	for name, loop := range values {
		const most = 256 << 10
		var err error
		if got := testkit.Allocated(most, func() { _, err = thrift.Marshal(loop) }); got > most {
			t.Errorf("%s: %d bytes allocated (limit %d)", name, got, most)
		}
		if wantError(t, err, fmt.Sprintf("nest deeper than %d", limits.Depth)); err == nil {
			t.Error(name)
		}
		if n, text := loop.SizeThrift(), loop.String(); n <= 0 || len(text) > limits.TextBytes+len("...") {
			t.Errorf("%s: %d bytes, and a text of %d", name, n, len(text))
		}
		for what, copies := range map[string]func(){"Clone": func() { cloneOf(loop) }, "Detach": loop.Detach} {
			func() {
				defer func() {
					if reason := fmt.Sprint(recover()); !strings.Contains(reason, "cannot be copied") {
						t.Errorf("%s: %s ends with %s", name, what, reason)
					}
				}()
				copies()
			}()
		}
	}
}

// TestBounds_JSONIsReadInMemoryOfItsLength has a long text within many structs that read
// themselves.
func TestBounds_JSONIsReadInMemoryOfItsLength(t *testing.T) {
	const levels, length = limits.JSONDepth/2 - 1, 1 << 17
	text := []byte(strings.Repeat(`{"next":{"true":`, levels) + `{"text":"` + strings.Repeat("x", length) + `"}` + strings.Repeat("}}", levels))
	var received *bounds.Switch
	var err error
	most := int64(16 * len(text))
	got := testkit.Allocated(most, func() {
		received = new(bounds.Switch)
		err = json.Unmarshal(text, received)
	})
	if err != nil || got > most {
		t.Errorf("%d bytes allocated for a text of %d (limit %d), %v", got, len(text), most, err)
	}
	for range levels {
		received = received.Next[true]
	}
	if len(received.Text) != length {
		t.Errorf("%d bytes arrived", len(received.Text))
	}
	deep := strings.Repeat(`{"next":{"true":`, limits.JSONDepth) + "{}" + strings.Repeat("}}", limits.JSONDepth)
	wantError(t, json.Unmarshal([]byte(deep), &bounds.Switch{}), fmt.Sprintf("deeper than %d", limits.JSONDepth))
	if err := json.Unmarshal([]byte(`{"text":"`+strings.Repeat(`[{\"\\`, limits.JSONDepth)+`"}`), &bounds.Switch{}); err != nil {
		t.Errorf("brackets in a text count: %v", err)
	}
}

// TestBounds_SharedContainersAreWrittenUntilTheLimit has a thousand times the same list in
// a list, and so on: 10^18 of them, of which those are written that a message has room
// for.
func TestBounds_SharedContainersAreWrittenUntilTheLimit(t *testing.T) {
	const n = 1000
	list5 := slices.Repeat([][]int32{{1}}, n)
	list4 := slices.Repeat([][][]int32{list5}, n)
	list3 := slices.Repeat([][][][]int32{list4}, n)
	list2 := slices.Repeat([][][][][]int32{list3}, n)
	texts := slices.Repeat([][]string{{"a"}}, n)
	inner := map[int32][][]string{}
	for i := range int32(n) {
		inner[i] = texts
	}
	maps := slices.Repeat([]map[int32][][]string{inner}, n)
	outer := map[int32][]map[int32][][]string{}
	for i := range int32(n) {
		outer[i] = maps
	}
	numbers := slices.Repeat([][][]int64{{{1}}}, n)
	pairs := slices.Repeat([]thrift.Pair[[]int32, [][][]int64]{{Value: numbers}}, n)
	pairs2 := slices.Repeat([][]thrift.Pair[[]int32, [][][]int64]{pairs}, n)
	for name, nested := range map[string]*bounds.Nested{
		"lists": {Lists: slices.Repeat([][][][][][]int32{list2}, n)},
		"maps":  {Maps: slices.Repeat([]map[int32][]map[int32][][]string{outer}, n)},
		"pairs": {Pairs: slices.Repeat([]thrift.Pair[[]int32, [][]thrift.Pair[[]int32, [][][]int64]]{{Value: pairs2}}, n)},
	} {
		_, err := thrift.Marshal(nested)
		wantError(t, err, fmt.Sprintf("limit %d", limits.MessageBytes))
		if err == nil {
			t.Error(name)
		}
	}
}
