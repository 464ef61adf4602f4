package linkbuf_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// TestVector_StaysWithinOneWrite splits lists that no single call takes, and
// writes them in parts of any size.
func TestVector_StaysWithinOneWrite(t *testing.T) {
	const iovMax = 1024
	mebi := make([]byte, 1<<20)
	repeated := func(piece []byte, count int) [][]byte {
		list := make([][]byte, count)
		for i := range list {
			list[i] = piece
		}
		return list
	}
	lists := map[string][][]byte{
		"nothing":       nil,
		"empty pieces":  repeated(nil, 3000),
		"small":         {[]byte("a"), nil, []byte("bc"), nil},
		"many":          repeated([]byte("ab"), 5000),
		"5 GiB":         repeated(mebi, 5<<10),
		"empty between": append(repeated(nil, 2000), repeated(mebi[:1], 2000)...),
	}
	if strconv.IntSize == 64 {
		// Never touched, so it takes addresses, but no memory.
		length := int64(3 << 30)
		lists["one of 3 GiB"] = [][]byte{mebi[:1], make([]byte, length), mebi[:1]}
	}
	for name, list := range lists {
		for _, most := range []int64{math.MaxInt64, 1<<29 + 1, 1 << 21} {
			if most == 1<<21 && name != "many" {
				continue
			}
			t.Run(fmt.Sprint(name, " by ", most), func(t *testing.T) {
				rest := append([][]byte(nil), list...)
				var written, want int64
				for _, piece := range list {
					want += int64(len(piece))
				}
				for len(rest) > 0 {
					vector := linkbuf.Vector(rest)
					var length int64
					for _, piece := range vector {
						length += int64(len(piece))
					}
					switch {
					case len(vector) > iovMax || length > math.MaxInt32:
						t.Fatalf("a vector of %d pieces and %d bytes", len(vector), length)
					case length == 0 && written < want:
						t.Fatal("an empty vector before the end")
					}
					length = min(length, most)
					written += length
					rest = linkbuf.Advance(rest, length)
				}
				if written != want {
					t.Errorf("%d bytes were written, want %d", written, want)
				}
			})
		}
	}
}

func TestAdvance_GoesOnBehindWhatWasWritten(t *testing.T) {
	for written, want := range map[int64][]string{
		0: {"ab", "", "cde", ""},
		1: {"b", "", "cde", ""},
		2: {"cde", ""},
		4: {"e", ""},
		5: {},
	} {
		got := linkbuf.Advance([][]byte{[]byte("ab"), nil, []byte("cde"), nil}, written)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("Advance by %d leaves %q, want %q", written, got, want)
		}
	}
}
