package thrift_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// policies are all of them.
var policies = []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn, thrift.StringsScoped}

// sized returns a struct whose message is a little longer than n bytes, with short
// strings and one of an eighth of that.
func sized(n int) *node {
	s := &node{Name: strings.Repeat("n", n/8), Blob: []byte("blob"), Scores: map[string]int64{"score": 1}, Children: []node{}}
	for i := 0; i < n-n/8; i += 104 {
		s.Labels = append(s.Labels, fmt.Sprintf("%0100d", i))
	}
	return s
}

func mustMarshal(t testing.TB, s thrift.Struct) []byte {
	t.Helper()
	b, err := thrift.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// within reports whether s is a part of b.
func within(b []byte, s string) bool {
	start, at := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return at >= start && at < start+uintptr(len(b))
}

func TestUnmarshal_KeepsNoReferenceWhateverItsLength(t *testing.T) {
	for _, n := range []int{8, 1000, 10_000, 100_000, 1_000_000} {
		want := sized(n)
		b := mustMarshal(t, want)
		var got node
		if err := thrift.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 0xdb
		}
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("%d bytes: the struct changed with the bytes it was read from", n)
		}
	}
}

func TestUnmarshalOwned_EqualForAllPolicies(t *testing.T) {
	for _, n := range []int{8, 1000, 10_000, 100_000, 1_000_000} {
		want := sized(n)
		for _, policy := range policies {
			b := mustMarshal(t, want)
			var got node
			if err := thrift.UnmarshalOwned(b, &got, thrift.UnmarshalConfig{Strings: policy}); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(&got, want) {
				t.Errorf("%d bytes, policy %d: read back something else", n, policy)
			}
		}
	}
}

// TestUnmarshalOwned_Shares says which strings refer to the message.
func TestUnmarshalOwned_Shares(t *testing.T) {
	cases := []struct {
		name        string
		bytes       int
		policy      thrift.Strings
		short, long bool
	}{
		{"auto, short message", 10_000, thrift.StringsAuto, true, true},
		{"auto, long message", 100_000, thrift.StringsAuto, false, true},
		{"message, short message", 10_000, thrift.StringsMessage, true, true},
		{"message, long message", 100_000, thrift.StringsMessage, true, true},
		{"own, short message", 10_000, thrift.StringsOwn, false, false},
		{"own, long message", 100_000, thrift.StringsOwn, false, false},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			s := sized(test.bytes)
			s.Name += strings.Repeat("n", test.bytes/8)
			b := mustMarshal(t, s)
			var got node
			if err := thrift.UnmarshalOwned(b, &got, thrift.UnmarshalConfig{Strings: test.policy}); err != nil {
				t.Fatal(err)
			}
			if short, long := within(b, got.Labels[3]), within(b, got.Name); short != test.short || long != test.long {
				t.Errorf("short strings refer to the message: %v, want %v; long ones: %v, want %v", short, test.short, long, test.long)
			}
			if blob := unsafe.String(unsafe.SliceData(got.Blob), len(got.Blob)); within(b, blob) != test.short {
				t.Errorf("the short binary refers to the message: %v, want %v", within(b, blob), test.short)
			}
		})
	}
}

// TestUnmarshal_OneByteIsNotShared: Go keeps strings of one byte in memory of its
// own, which a binary of one byte must not be.
func TestUnmarshal_OneByteIsNotShared(t *testing.T) {
	for _, policy := range policies {
		b := mustMarshal(t, &node{Blob: []byte{'x'}})
		var got node
		if err := thrift.UnmarshalOwned(b, &got, thrift.UnmarshalConfig{Strings: policy}); err != nil {
			t.Fatal(err)
		}
		got.Blob[0] = 'y'
		if text := string([]byte{'x'}); text != "x" {
			t.Fatalf("policy %d: x has become %q", policy, text)
		}
	}
}

// TestUnmarshal_BinariesHaveNoRoomBehind: who appends to a binary must not write over
// the value that follows it in the message or in a copy.
func TestUnmarshal_BinariesHaveNoRoomBehind(t *testing.T) {
	for _, blob := range []int{1, 3_000, 50_000} {
		for _, name := range []string{"", "name"} { // what comes first makes the copy
			b := mustMarshal(t, &node{Name: name, Blob: bytes.Repeat([]byte{'x'}, blob), Labels: []string{strings.Repeat("l", 20_000)}})
			for _, policy := range policies {
				for _, owned := range []bool{false, true} {
					var got node
					lent := bytes.Clone(b)
					var err error
					if owned {
						err = thrift.UnmarshalOwned(lent, &got, thrift.UnmarshalConfig{Strings: policy})
					} else {
						_, err = thrift.Codec{Strings: policy}.ReadBody(lent, &got, limits.DefaultMessage(), true)
					}
					if err != nil || len(got.Blob) != blob || cap(got.Blob) != blob {
						t.Errorf("binary of %d bytes behind %q, policy %d, owned %v: capacity of %d, %v", blob, name, policy, owned, cap(got.Blob), err)
					}
				}
			}
		}
	}
}

// TestUnmarshal_ListsDoNotShareElements: lists are parts of one piece of memory, but
// to append to one must not change another.
func TestUnmarshal_ListsDoNotShareElements(t *testing.T) {
	s := &node{Children: []node{{Labels: []string{"a", "b"}}, {Labels: []string{"c"}}, {Labels: []string{}}}}
	var got node
	if err := thrift.Unmarshal(mustMarshal(t, s), &got); err != nil {
		t.Fatal(err)
	}
	_ = append(got.Children[0].Labels, "z")
	if label := got.Children[1].Labels[0]; label != "c" {
		t.Errorf("an append to the first list has made %q of the second one's c", label)
	}
}

// TestUnmarshal_Allocations: the number of allocations does not depend on how many
// strings and lists there are.
func TestUnmarshal_Allocations(t *testing.T) {
	build := func(children int) []byte {
		s := &node{}
		for range children {
			s.Children = append(s.Children, node{Name: "name", Labels: []string{"a", "bc", "def"}})
		}
		return mustMarshal(t, s)
	}
	// Of the maps that are not there, each node has an empty one.
	count := func(b []byte) float64 {
		return testing.AllocsPerRun(20, func() {
			var got node
			if err := thrift.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := count(build(10)), count(build(90))
	if more := many - few; more > 80+8 {
		t.Errorf("80 children more take %v allocations more, want 1 each for their maps and a few for all", more)
	}
}

// mixed reads its strings with policies that take turns.
type mixed struct{ texts [6]string }

func (m *mixed) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	for i, text := range m.texts {
		b = w.FieldString(b, int16(i), text)
	}
	return w.EndStruct(b)
}

func (m *mixed) ReadThrift(r *thrift.Reader, p int) int {
	b := r.BeginStruct()
	for len(b)-p >= 4 && !thrift.KeyAt(b, p).IsStop() {
		i := int(thrift.KeyAt(b, p).ID())
		before := r.UseStrings(policies[i%len(policies)])
		m.texts[i], p = r.String(p + 3)
		if r.UseStrings(before) != policies[i%len(policies)] {
			panic("UseStrings returns something else than what was said before")
		}
	}
	return r.EndStruct(p, 0, "mixed")
}

// TestUnmarshal_StringsOfEveryLength reads short strings of a long message, which are
// copied by words into pieces.
func TestUnmarshal_StringsOfEveryLength(t *testing.T) {
	text := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 3)
	want := &node{Name: strings.Repeat("n", 100_000), Blob: []byte{}, Scores: map[string]int64{}, Children: []node{}}
	for length := range 70 {
		want.Labels = append(want.Labels, text[length%7:length%7+length])
	}
	var got node
	if err := thrift.Unmarshal(mustMarshal(t, want), &got); err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("read back %q, %v; want %q", got.Labels, err, want.Labels)
	}
}

// TestUnmarshal_LongerStringsHaveMemoryOfTheirOwn: only strings of less than 2 KiB share
// pieces of memory, so that one that is kept keeps little else.
func TestUnmarshal_LongerStringsHaveMemoryOfTheirOwn(t *testing.T) {
	for _, test := range []struct {
		length int
		shares bool
	}{{100, true}, {2047, true}, {2049, false}, {3000, false}, {17_000, false}} {
		text := strings.Repeat("l", test.length)
		var got node
		if err := thrift.Unmarshal(mustMarshal(t, &node{Name: strings.Repeat("n", 100_000), Labels: slices.Repeat([]string{text}, 20)}), &got); err != nil {
			t.Fatal(err)
		}
		place := func(i int) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(got.Labels[i]))) }
		if shares := place(1)-place(0) == uintptr(test.length); shares != test.shares {
			t.Errorf("strings of %d bytes are in one piece of memory: %v, want %v", test.length, shares, test.shares)
		}
	}
}

// TestUseStrings_OneCopyForAll: fields with a policy of their own do not make the others
// copy the rest of the message once more.
func TestUseStrings_OneCopyForAll(t *testing.T) {
	const length = 1000
	b := mustMarshal(t, &mixed{texts: [6]string(slices.Repeat([]string{strings.Repeat("x", length)}, 6))})
	got := &mixed{}
	if err := thrift.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	place := func(i int) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(got.texts[i]))) }
	for _, i := range []int{1, 3, 4, 5} { // all but those with StringsOwn
		if got := place(i) - place(0); got != uintptr(i*(length+7)) {
			t.Errorf("string %d is %d bytes behind string 0, want %d as in the message", i, got, i*(length+7))
		}
	}
}

func TestUseStrings_PoliciesTakeTurns(t *testing.T) {
	for _, length := range []int{1, 10, 10_000, 100_000} {
		want := &mixed{}
		for i := range want.texts {
			want.texts[i] = strings.Repeat(string(rune('a'+i)), length)
		}
		for _, owned := range []bool{false, true} {
			b := mustMarshal(t, want)
			got := &mixed{}
			err := thrift.Unmarshal(b, got)
			if owned {
				got = &mixed{}
				err = thrift.UnmarshalOwned(b, got, thrift.UnmarshalConfig{Strings: thrift.StringsMessage})
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("strings of %d bytes, owned %v: something else was read, %v", length, owned, err)
			}
			for i, text := range got.texts {
				refers := owned && (policies[i%len(policies)] == thrift.StringsMessage || policies[i%len(policies)] == thrift.StringsScoped || policies[i%len(policies)] == thrift.StringsAuto && (len(b) <= 16<<10 || length >= len(b)/8))
				if within(b, text) != refers {
					t.Errorf("string %d of %d bytes, owned %v: refers to the message: %v", i, length, owned, !refers)
				}
			}
		}
	}
}

// FuzzUnmarshalOwned: where strings are kept does not change what is read.
func FuzzUnmarshalOwned(f *testing.F) {
	short := sample()
	short.Labels = []string{"", "a"}
	f.Add(mustMarshal(f, short), 0)
	f.Add(mustMarshal(f, &node{Children: []node{{Labels: []string{"x"}}, {Blob: []byte("y")}}}), 20_000)
	f.Fuzz(func(t *testing.T, b []byte, pad int) {
		if pad > 0 && pad < 1<<17 {
			// An unknown field in front makes the message long.
			field := append([]byte{byte(thriftwire.String), 0x7f, 0xff, 0, byte(pad >> 16), byte(pad >> 8), byte(pad)}, make([]byte, pad)...)
			b = append(field, b...)
		}
		var want node
		wantErr := thrift.Unmarshal(b, &want)
		for _, policy := range policies {
			owned := bytes.Clone(b)
			var got node
			err := thrift.UnmarshalOwned(owned, &got, thrift.UnmarshalConfig{Strings: policy})
			if err != nil && strings.Contains(err.Error(), "more memory") || wantErr != nil && strings.Contains(wantErr.Error(), "more memory") {
				continue // they need different amounts
			}
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("policy %d: %v; Unmarshal: %v", policy, err, wantErr)
			}
			// What was read is compared as it is written: NaN is not equal to itself, and
			// maps have no order.
			if err == nil && len(got.Scores) == len(want.Scores) && len(want.Scores) < 2 && !bytes.Equal(mustMarshal(t, &got), mustMarshal(t, &want)) {
				t.Fatalf("policy %d: %+v; Unmarshal: %+v", policy, got, want)
			}
		}
	})
}

func TestReadBody_ScopedStringsReferIfTheyMay(t *testing.T) {
	for _, policy := range policies {
		for _, length := range []int{1, 100, 40_000} {
			for _, may := range []bool{false, true} {
				want := node{Name: strings.Repeat("n", length), Labels: []string{"label"}, Blob: []byte("blob")}
				b := mustMarshal(t, &want)
				var got node
				refers, err := thrift.Codec{Strings: policy}.ReadBody(b, &got, limits.DefaultMessage(), may)
				wantRefers := may && policy == thrift.StringsScoped
				if err != nil || refers != wantRefers || got.Name != want.Name || got.Labels[0] != "label" || string(got.Blob) != "blob" {
					t.Fatalf("policy %d, %d bytes, may %v: refers %v, %v", policy, length, may, refers, err)
				}
				if within(b, got.Name) != wantRefers || within(b, got.Labels[0]) != wantRefers || within(b, unsafe.String(&got.Blob[0], len(got.Blob))) != wantRefers {
					t.Errorf("policy %d, %d bytes, may %v: refers to the message: %v", policy, length, may, !wantRefers)
				}
			}
		}
	}
	// One field is enough, and the others have their own.
	b := mustMarshal(t, &mixed{texts: [6]string{"a", "b", "c", "d", "e", "f"}})
	got := &mixed{}
	refers, err := thrift.Binary.ReadBody(b, got, limits.DefaultMessage(), true)
	if err != nil || !refers {
		t.Errorf("with a scoped field: refers %v, %v", refers, err)
	}
	for i, text := range got.texts {
		if within(b, text) != (policies[i%len(policies)] == thrift.StringsScoped) {
			t.Errorf("string %d refers to the message: %v", i, within(b, text))
		}
	}
}
