package shape_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/shape/wire"
)

// The benchmarks compare shapes only if the shapes mean the same bytes.
func TestShapes_WriteTheSameBytes(t *testing.T) {
	for _, percent := range []int{0, 25, 100} {
		messages := make(map[int][]byte)
		for _, c := range contestants() {
			chosen := masks(c.fields, percent)
			message := c.encoded(chosen)
			if first, found := messages[c.fields]; !found {
				messages[c.fields] = message
			} else if !bytes.Equal(message, first) {
				t.Errorf("%v filled %d %%: bytes differ from the first shape's", c, percent)
			}
			for _, own := range []bool{false, true} {
				again, err := c.transcode(message, wire.Config{OwnStrings: own, FirstBytes: 64 << 10})
				if err != nil || !bytes.Equal(again, message) {
					t.Errorf("%v filled %d %%, own strings %v: decoding and encoding changed the bytes (%v)", c, percent, own, err)
				}
			}
		}
	}
}

func TestShapes_StopAtTheBudget(t *testing.T) {
	for _, c := range contestants() {
		message := c.encoded(masks(c.fields, 0))
		budget := int64(c.size * elements)
		if _, err := c.decode(message, wire.Config{Budget: budget}); err != nil {
			t.Errorf("%v: %v with a budget of %d bytes", c, err, budget)
		}
		if _, err := c.decode(message, wire.Config{Budget: budget - 1}); !errors.Is(err, wire.ErrBudget) {
			t.Errorf("%v: %v with one byte less, want %v", c, err, wire.ErrBudget)
		}
	}
}

// FuzzShapes_Agree checks that all shapes of one struct make the same of any
// bytes: the same error or the same value, seen by encoding it again.
func FuzzShapes_Agree(f *testing.F) {
	all := contestants()
	for _, percent := range []int{0, 25, 100} {
		f.Add(all[0].encoded(masks(2, percent)[:3]))
		f.Add(all[3].encoded(masks(20, percent)[:2]))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		type outcome struct {
			bytes []byte
			err   error
		}
		if len(message) > 4<<10 {
			return // a byte for each element of 3.2 KB: enough memory
		}
		seen := make(map[int]outcome)
		for _, c := range all {
			again, err := c.transcode(message, wire.Config{})
			first, found := seen[c.fields]
			if !found {
				seen[c.fields] = outcome{again, err}
				continue
			}
			if !errors.Is(err, first.err) || !bytes.Equal(again, first.bytes) {
				t.Errorf("%v: %v, %x; the first shape: %v, %x", c, err, again, first.err, first.bytes)
			}
		}
	})
}
