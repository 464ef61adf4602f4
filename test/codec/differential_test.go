package codec_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// verdict is what came of a comparison; tests count them, so that none is always the
// same.
type verdict string

const (
	allAccept verdict = "all accept"
	allRefuse verdict = "all refuse"
	// The peers were not asked: see comparison.
	onlyOurs verdict = "ours alone refuses, or skips"
	onlyPeer verdict = "Kitex alone refuses"
)

// messageMax is how long a message may be that the peers are given: they know no limit
// for nesting, and a stack that overflows ends the process.
const messageMax = 64 << 10

// comparison gives a message to the codecs. What they may do differently is what
// docs/protocol/thrift.md lists; TestDifferences has an example of each.
//
// Peers are not given a message with elements of other types than defined, because
// they take the bytes for something else, nor one that declares more elements than can
// follow: Kitex allocates all of them first, gigabytes for a few bytes.
type comparison struct {
	t       testing.TB
	subject *subject
	message []byte
	// meaning is that of the message.
	meaning string
	noted   notes
}

func compare(t testing.TB, s *subject, message []byte) verdict {
	t.Helper()
	meaning, end, noted, err := walk(s.record, message)
	c := &comparison{t: t, subject: s, message: message, meaning: meaning, noted: noted}
	if err == nil && end < len(message) {
		if r := s.byOurs(message, thrift.UnmarshalConfig{}); r.refused == nil {
			c.fatalf("we accept %d bytes behind the struct", len(message)-end)
		}
		c.message = message[:end]
	}
	if err != nil && !errors.Is(err, errMixedUp) {
		return c.refused(err)
	}
	ours := s.byOurs(c.message, thrift.UnmarshalConfig{})
	if errors.Is(err, errMixedUp) {
		return onlyOurs
	}
	if ours.refused != nil && strings.Contains(ours.refused.Error(), "more memory than") {
		return onlyOurs
	}
	c.same("we", ours)
	for _, strings := range []thrift.Strings{thrift.StringsMessage, thrift.StringsOwn, thrift.StringsScoped} {
		c.same("we", s.byOurs(c.message, thrift.UnmarshalConfig{Strings: strings}))
	}
	c.same("Apache", s.byApache(c.message))
	kitex := s.byKitex(c.message)
	if kitex.refused != nil && (noted.highCode || noted.uuid) {
		return onlyPeer
	}
	c.same("Kitex", kitex)
	return allAccept
}

func (c *comparison) fatalf(format string, arguments ...any) {
	c.t.Helper()
	c.t.Fatalf("%s, %s: "+format, append([]any{c.subject.name, inHex(c.message)}, arguments...)...)
}

// inHex is the beginning of a message; all of one that fails is in a file.
func inHex(message []byte) string { return fmt.Sprintf("% x", message[:min(len(message), 1000)]) }

// refused is the case of a message in which the walker finds an error.
func (c *comparison) refused(err error) verdict {
	c.t.Helper()
	if r := c.subject.byOurs(c.message, thrift.UnmarshalConfig{}); r.refused == nil {
		c.fatalf("we accept it: %v", err)
	}
	if c.noted.deep {
		return onlyOurs
	}
	if r := c.subject.byApache(c.message); r.refused == nil {
		c.fatalf("Apache accepts it: %v", err)
	}
	if c.noted.declared {
		return allRefuse
	}
	if r := c.subject.byKitex(c.message); r.refused == nil {
		c.fatalf("Kitex accepts it: %v", err)
	}
	return allRefuse
}

// same wants a codec to have read the message as it is meant.
func (c *comparison) same(who string, r result) {
	c.t.Helper()
	if r.refused != nil {
		c.fatalf("%s refuse: %v", who, r.refused)
	}
	if r.used != len(c.message) {
		c.fatalf("%s: %d of %d bytes", who, r.used, len(c.message))
	}
	if c.noted.arms {
		return // cannot be written
	}
	if r.unwritten != nil {
		if who != "we" && c.noted.repeated || who == "we" && c.noted.deepest {
			return
		}
		c.fatalf("%s: written again: %v", who, r.unwritten)
	}
	if who != "we" && c.noted.repeatedKey {
		return
	}
	w := &walker{message: r.written, depth: limits.Depth + 1}
	meaning, end, err := w.record(c.subject.record, 0, 1)
	if err != nil || end != len(r.written) || meaning != c.meaning {
		c.fatalf("%s write %s\nwhich means %.2000s, %v\nand not     %.2000s", who, inHex(r.written), meaning, err, c.meaning)
	}
}

// FuzzMessages compares the codecs on whatever the fuzzer makes of good messages. The
// first byte selects a struct.
func FuzzMessages(f *testing.F) {
	all := subjects()
	random := rand.New(rand.NewPCG(11, 25))
	for i, s := range all {
		f.Add(byte(i), randomMessage(random, s))
	}
	f.Fuzz(func(t *testing.T, which byte, message []byte) {
		if len(message) > messageMax {
			return
		}
		compare(t, all[int(which)%len(all)], message)
	})
}

// rounds is how many messages a test gives to the codecs: 3 seconds.
const rounds = 20000

// TestMessages_AreReadAlike gives random messages, good and damaged ones, to the codecs.
func TestMessages_AreReadAlike(t *testing.T) {
	all := subjects()
	random := rand.New(rand.NewPCG(10, 25))
	counts := map[verdict]int{}
	for i := range rounds {
		s := all[i%len(all)]
		message := randomMessage(random, s)
		if random.IntN(4) > 0 {
			damage(random, &message)
		}
		counts[compare(t, s, message)]++
	}
	t.Log(counts)
	for _, v := range []verdict{allAccept, allRefuse, onlyOurs, onlyPeer} {
		if counts[v] < rounds/400 {
			t.Errorf("%q came up %d times in %d messages: the comparison says little about it", v, counts[v], rounds)
		}
	}
}

// damage changes a message in one place.
func damage(random *rand.Rand, message *[]byte) {
	b := *message
	at := random.IntN(len(b))
	switch random.IntN(5) {
	case 0:
		b[at] = byte(random.Uint32())
	case 1:
		b[at] = []byte{0, 2, 8, 11, 12, 13, 15, 16, 0x80}[random.IntN(9)]
	case 2:
		b = b[:at]
	case 3:
		if at+4 <= len(b) {
			binary.BigEndian.PutUint32(b[at:], []uint32{0, 1, 0xffffffff, 0x7fffffff, 70000}[random.IntN(5)])
		}
	case 4:
		b = append(append(append([]byte{}, b[:at]...), b[random.IntN(len(b)):]...), b[at:]...)
	}
	*message = b
}
