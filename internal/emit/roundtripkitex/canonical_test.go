package roundtripkitex_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/common"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestAppendCanonical_IsTheSameForEqualValues(t *testing.T) {
	for _, prototype := range declared {
		for seed := range uint64(20) {
			s := newFilled(prototype, seed)
			want, err := thrift.AppendCanonical(nil, s)
			if err != nil || len(want) != s.BLength() {
				t.Fatalf("%T: %d bytes, %v, want %d", s, len(want), err, s.BLength())
			}
			received := newOf(prototype)
			if err := thrift.Unmarshal(want, received); err != nil {
				t.Fatalf("%T: %v", s, err)
			}
			if received.BLength() != s.BLength() {
				continue // a tree came back with empty ones in place of nil, and so is another value
			}
			if got, err := thrift.AppendCanonical(nil, received); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%T, seed %d: %v\nfirst  %x\nsecond %x", s, seed, err, want, got)
			}
		}
	}
}

// TestAppendCanonical_OfKeysBehindPointers: here a map can have equal keys.
func TestAppendCanonical_OfKeysBehindPointers(t *testing.T) {
	s := &shape.Containers{ByPoint: map[*common.Point]string{}}
	for _, value := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.ByPoint[&common.Point{X: int32(len(s.ByPoint) % 2)}] = value
	}
	want, err := thrift.AppendCanonical(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got, err := thrift.AppendCanonical(nil, s); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("the second time it is other bytes, %v", err)
		}
	}
}
