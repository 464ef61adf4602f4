package roundtripkitex_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestSets_WithEqualElements: FastWrite panics, as that of Kitex does.
func TestSets_WithEqualElements(t *testing.T) {
	for _, c := range []struct {
		s    *own.Sets
		want string
	}{
		{&own.Sets{Texts: []string{"a", "b", "a"}}, "own.Sets: texts: element 2 equals element 0"},
		{&own.Sets{Inner: []*own.Inner{{Number: 1}, {Number: 1}}}, "inner: element 1 equals element 0"},
		{&own.Sets{Inner: []*own.Inner{nil, nil}}, "inner: element 1 equals element 0"},
		{&own.Sets{Doubles: []float64{1, 1}}, "doubles: element 1 equals element 0"},
		{&own.Sets{Many: [][]int32{{1}, {2, 2}}}, "many: element 1 equals element 0"},
		{&own.Sets{Blobs: [][]byte{{1}, {1}}}, "blobs: element 1 equals element 0"},
	} {
		if _, err := thrift.Marshal(c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("FastWrite: %s, want a panic with %q", got, c.want)
				}
			}()
			c.s.FastWrite(make([]byte, c.s.BLength()))
		}()
	}
	text := "\x0e\x00\x01\x0b\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x01a\x0e\x00\x05\x0b\x00\x00\x00\x00\x00"
	const want = "own.Sets: field 1: set: element 1 equals element 0"
	if err := thrift.Unmarshal([]byte(text), new(own.Sets)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err := new(own.Sets).FastRead([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("FastRead: %v, want %q", err, want)
	}
}
