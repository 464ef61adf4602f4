package roundtrip_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// piece is memory that a value refers to.
type piece struct {
	start, end uintptr
	path       string
	// text: nobody writes to it, so other texts may be there as well, as those of
	// defaults are.
	text bool
}

// pieces collects what a value refers to: also what stands behind the ends of its lists,
// which whoever appends to them, or reads into them again, writes to.
type pieces []piece

func (a *pieces) add(start unsafe.Pointer, size uintptr, path string, text bool) {
	if start != nil && size > 0 {
		*a = append(*a, piece{uintptr(start), uintptr(start) + size, path, text})
	}
}

func (a *pieces) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		a.add(unsafe.Pointer(unsafe.StringData(v.String())), uintptr(v.Len()), path, true)
	case reflect.Pointer:
		if !v.IsNil() {
			a.add(v.UnsafePointer(), v.Type().Elem().Size(), path, false)
			a.walk(v.Elem(), path)
		}
	case reflect.Slice:
		a.add(v.UnsafePointer(), uintptr(v.Cap())*v.Type().Elem().Size(), path, false)
		for i := range v.Cap() {
			a.walk(v.Slice(0, v.Cap()).Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		a.add(v.UnsafePointer(), 1, path, false)
		for key, value := range v.Seq2() {
			a.walk(key, fmt.Sprintf("%s{%v}, key", path, key))
			a.walk(value, fmt.Sprintf("%s{%v}", path, key))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			a.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

// checkApart compares all memory that a value refers to: what is in two places changes in
// both when somebody writes to one of them.
func checkApart(t *testing.T, s thrift.Struct, beside ...piece) {
	t.Helper()
	all := pieces(slices.Clone(beside))
	all.walk(reflect.ValueOf(s), "s")
	slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	var furthest [2]piece // of those before: what may be written to, and texts
	for _, one := range all {
		kind := 0
		if one.text {
			kind = 1
		}
		for other, before := range furthest {
			if one.start < before.end && kind+other < 2 {
				t.Fatalf("%T: %s and %s share memory", s, before.path, one.path)
			}
		}
		if one.end > furthest[kind].end {
			furthest[kind] = one
		}
	}
}

var policies = []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn, thrift.StringsScoped}

// TestApart_NothingIsInTwoPlaces reads each struct under each policy: pieces for short
// lists, pointers and strings are shared by many, and each of them has a part of its own.
func TestApart_NothingIsInTwoPlaces(t *testing.T) {
	for _, prototype := range declared {
		for seed := range uint64(8) {
			message := marshal(t, newFilled(prototype, seed))
			for _, policy := range policies {
				received := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
				if err := thrift.UnmarshalOwned(message, received, thrift.UnmarshalConfig{Strings: policy}); err != nil {
					t.Fatal(err)
				}
				checkApart(t, received)
				received = reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
				if err := thrift.Unmarshal(message, received); err != nil {
					t.Fatal(err)
				}
				checkApart(t, received, piece{uintptr(unsafe.Pointer(&message[0])), uintptr(unsafe.Pointer(&message[0])) + uintptr(len(message)), "the message", false})
			}
		}
	}
}

// TestApart_AlsoWhenMemoryIsReused reads messages one after the other into the same struct:
// whole ones, some that are cut off, and some in which fields come again.
func TestApart_AlsoWhenMemoryIsReused(t *testing.T) {
	for _, prototype := range []thrift.Struct{reuse.NewNode(), reuse.NewBranch(), reuse.NewKeeper(), reuse.NewKeyed()} {
		for _, policy := range policies {
			config := thrift.UnmarshalConfig{Strings: policy, Reuse: true}
			reused := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
			random := rand.New(rand.NewPCG(uint64(policy), 7))
			for seed := range uint64(150) {
				message := marshal(t, newFilled(prototype, seed))
				switch random.IntN(4) {
				case 0:
					_ = thrift.UnmarshalOwned(message[:random.IntN(len(message))], reused, config)
					checkApart(t, reused)
				case 1: // without its end mark, before another one
					message = append(message[:len(message)-1], marshal(t, newFilled(prototype, seed+1000))...)
				}
				if err := thrift.UnmarshalOwned(message, reused, config); err != nil {
					t.Fatal(err)
				}
				checkApart(t, reused)
			}
		}
	}
}

// TestApart_CanFail has what the tests above look for.
func TestApart_CanFail(t *testing.T) {
	labels := []string{"a", "b"}
	for name, shared := range map[string]*reuse.Branch{
		"behind the end": {Labels: labels[:1:2], Branches: []reuse.Branch{{Labels: labels[1:]}}},
		"the same map":   {Counts: map[int32]int32{1: 2}, Next: &reuse.Branch{}},
	} {
		if shared.Next != nil {
			shared.Next.Counts = shared.Counts
		}
		inner := &testing.T{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			checkApart(inner, shared)
		}()
		<-done
		if !inner.Failed() {
			t.Errorf("%s: it is not found", name)
		}
	}
}
