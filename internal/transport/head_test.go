package transport_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// infoOf is what a header has that carries these pairs, repeats included.
func infoOf(t *testing.T, pairs []transport.Pair) wire.Info {
	t.Helper()
	b := binary.BigEndian.AppendUint16([]byte{wire.BlockStrings}, uint16(len(pairs)))
	for _, pair := range pairs {
		for _, text := range []string{pair.Prefix + pair.Key, pair.Value} {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
		}
	}
	info, err := wire.ParseInfo(b)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// repeated returns count pairs of which distinct have a key of their own, the
// others one of those again.
func repeated(count, distinct int, prefixes ...string) []transport.Pair {
	all := make([]transport.Pair, count)
	for i := range all {
		// 7 changes the order in which keys come again.
		number := i
		if i >= distinct {
			number = i * 7 % distinct
		}
		all[i] = transport.Pair{Prefix: prefixes[number%len(prefixes)], Key: fmt.Sprint("k", number/len(prefixes)), Value: fmt.Sprint("v", i)}
	}
	return all
}

// lastOfEach is what must be left of pairs: of each key the last, where the
// first was.
func lastOfEach(pairs []transport.Pair) (left []transport.Pair) {
	for _, pair := range pairs {
		same := func(p transport.Pair) bool { return p.Prefix == pair.Prefix && p.Key == pair.Key }
		if at := slices.IndexFunc(left, same); at >= 0 {
			left[at].Value = pair.Value
		} else {
			left = append(left, pair)
		}
	}
	return left
}

// TestHead_TheLastPairOfAKeyCounts, where the first one was, however many there
// are, in requests and in replies.
func TestHead_TheLastPairOfAKeyCounts(t *testing.T) {
	for _, count := range []int{1, 2, transport.ManyPairs - 1, transport.ManyPairs, transport.ManyPairs + 1, 33, 100, limits.HeaderPairs} {
		for _, distinct := range []int{1, 2, transport.ManyPairs - 1, transport.ManyPairs, transport.ManyPairs + 1, 100, limits.HeaderPairs} {
			if distinct > count {
				continue
			}
			// The same key with another prefix is another one.
			sent := repeated(count, distinct, wire.PersistentPrefix, wire.TransientPrefix)
			if got, want := transport.RequestMetadata(infoOf(t, sent)), lastOfEach(sent); !slices.Equal(got, want) {
				t.Errorf("a request with %d pairs of %d keys: %v, want %v", count, distinct, got, want)
			}
			sent = repeated(count, distinct, "")
			if got, want := transport.ReplyMetadata(infoOf(t, sent)), lastOfEach(sent); !slices.Equal(got, want) {
				t.Errorf("a reply with %d pairs of %d keys: %v, want %v", count, distinct, got, want)
			}
		}
	}
}

// TestHead_ManyPairsAreIndexed: looking for a key takes no walk over all pairs,
// which a peer may make as many as the limit allows. What that costs in memory
// is in proportion to the pairs: a key, a value and an entry of the index each.
func TestHead_ManyPairsAreIndexed(t *testing.T) {
	for _, count := range []int{1, transport.ManyPairs - 1, transport.ManyPairs, transport.ManyPairs + 1, limits.HeaderPairs / 2, limits.HeaderPairs} {
		sent := repeated(count, count, "")
		if walked := transport.PairsWalked(sent); walked >= transport.ManyPairs {
			t.Errorf("with %d pairs a look-up walks over %d", count, walked)
		}
		info := infoOf(t, sent)
		allocations := testing.AllocsPerRun(10, func() { transport.ReplyMetadata(info) })
		// The slice grows by doubling and so does the index.
		if most := float64(2*count + 64); allocations > most {
			t.Errorf("%d pairs took %v allocations, want at most %v", count, allocations, most)
		}
		info = infoOf(t, repeated(count, 1, ""))
		if allocations, most := testing.AllocsPerRun(10, func() { transport.ReplyMetadata(info) }), float64(count+8); allocations > most {
			t.Errorf("%d pairs of one key took %v allocations, want at most %v", count, allocations, most)
		}
	}
}
