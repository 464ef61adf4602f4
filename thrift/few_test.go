package thrift_test

import (
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// numbers has lists of words, many of which share memory.
type numbers struct {
	Longs  [][]int64
	Ratios [][]float64
}

func (n *numbers) WriteThrift(w *thrift.Writer, b []byte) []byte {
	if !w.BeginStruct() {
		return b
	}
	for _, list := range n.Longs {
		b = w.I64List(b, thrift.Key(thrift.List, 1), list)
	}
	for _, list := range n.Ratios {
		b = w.DoubleList(b, thrift.Key(thrift.List, 2), list)
	}
	return w.EndStruct(b)
}

func (n *numbers) ReadThrift(r *thrift.Reader, p int) int {
	b := r.BeginStruct()
	var field thrift.FieldKey
fields:
	for len(b)-p >= 4 {
		switch field = thrift.KeyAt(b, p); field {
		case thrift.Key(thrift.List, 1):
			var list []int64
			list, p = r.I64List(p+3, nil)
			n.Longs = append(n.Longs, list)
		case thrift.Key(thrift.List, 2):
			var list []float64
			list, p = r.DoubleList(p+3, nil)
			n.Ratios = append(n.Ratios, list)
		default:
			if field.IsStop() {
				break fields
			}
			p = r.Skip(p, field)
		}
	}
	return r.EndStruct(p, field, "test.numbers")
}

// TestUnmarshal_ShortListsOfEveryLength: short lists are read by another way than long
// ones, if there is memory that others have left.
func TestUnmarshal_ShortListsOfEveryLength(t *testing.T) {
	want := &numbers{}
	for length := range 40 {
		longs, ratios := []int64{}, []float64{}
		for i := range length {
			longs = append(longs, int64(length)<<56-int64(i))
			ratios = append(ratios, float64(length)/float64(i+1))
		}
		want.Longs = append(want.Longs, longs)
		want.Ratios = append(want.Ratios, ratios)
	}
	message := mustMarshal(t, want)
	got := &numbers{}
	if err := thrift.Unmarshal(message, got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("read back %v, %v", got, err)
	}
	// To append to one must not change the next one, with which it shares memory.
	for i := range want.Longs {
		_ = append(got.Longs[i], -1)
		_ = append(got.Ratios[i], -1)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("what was appended to lists is in others: %v", got)
	}
	for cut := range message {
		if err := thrift.Unmarshal(message[:cut], &numbers{}); err == nil {
			t.Fatalf("nothing is said of %d bytes of %d", cut, len(message))
		}
	}
}

// TestUnmarshal_ShortListsOfOtherTypes are passed over wherever they are.
func TestUnmarshal_ShortListsOfOtherTypes(t *testing.T) {
	message := mustMarshal(t, &numbers{Longs: [][]int64{{1, 2, 3}, {4, 5}, {6}}})
	const second = 3 + 5 + 3*8 + 3 // its header, behind the first list
	message[second] = byte(thrift.Double)
	got := &numbers{}
	if err := thrift.Unmarshal(message, got); err != nil || !reflect.DeepEqual(got.Longs, [][]int64{{1, 2, 3}, nil, {6}}) {
		t.Errorf("read %v, %v", got.Longs, err)
	}
}
