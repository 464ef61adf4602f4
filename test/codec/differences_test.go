package codec_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// What a codec makes of a message.
const (
	// takesIt: it reads the message, and writes the same meaning.
	takesIt = "takes it"
	// keepsIt and dropsIt: it takes the message, and what is meant is or is not among
	// what it writes.
	keepsIt = "keeps it"
	dropsIt = "drops it"
	// misreads: it takes the bytes for something else.
	misreads  = "misreads it"
	endsEarly = "ends before them"
	writesNot = "reads it, cannot write it"
	refuses   = "refuses"
	panics    = "panics"
)

// difference is a message that the codecs take differently. Bytes are in hexadecimal,
// with spaces where they help.
type difference struct {
	name, subject, message string
	// meaning is the message with the meaning, if it is another one.
	meaning string
	// marker is what the difference is about, if all read the message.
	marker              string
	ours, kitex, apache string
}

// differences are all of them, in the order of the table in docs/protocol/thrift.md.
func differences() []difference {
	return []difference{
		{
			name: "elements of another type than defined", subject: "Containers",
			message: "0f0004 0a 00000001 0000000000000007 0b0063 00000000 00", meaning: "00",
			ours: takesIt, kitex: misreads, apache: misreads,
		},
		{
			name: "nesting beyond 64 (`Depth`)", subject: "Tree", message: strings.Repeat("0c0003", 64) + strings.Repeat("00", 65),
			ours: refuses, kitex: takesIt, apache: takesIt,
		},
		{
			name: "decoded, more than 64 KiB (`DecodeBytesBase`) and 64 bytes a byte (`DecodeBytesPerWireByte`)", subject: "Drawing",
			message: "0b0001 00000000 0f0003 0c 00010000" + strings.Repeat("00", 1<<16) + "00", // unions without a field
			ours:    refuses, kitex: writesNot, apache: writesNot,
		},
		{
			name: "bytes behind the struct", subject: "Nothing", message: "00 00",
			ours: refuses, kitex: endsEarly, apache: endsEarly,
		},
		{
			name: "a field that is passed over, of type 128 or more", subject: "Nothing", message: "800063 00 00",
			ours: refuses, kitex: panics, apache: refuses,
		},
		{
			name: "an empty container of such elements, passed over", subject: "Nothing", message: "0f0063 80 00000000 00",
			ours: takesIt, kitex: panics, apache: takesIt,
		},
		{
			name: "a uuid that is passed over", subject: "Nothing", message: "100063 000102030405060708090a0b0c0d0e0f 00",
			ours: takesIt, kitex: refuses, apache: takesIt,
		},
		{
			name: "a union with several fields: the last counts", subject: "Shape", message: "0a0004 0000000000000007 020006 01 00", meaning: "020006 01 00",
			ours: takesIt, kitex: writesNot, apache: writesNot,
		},
		{
			name: "a union that is absent, in a field that is not optional", subject: "Drawing", message: "0b0001 00000000 00",
			ours: writesNot, kitex: takesIt, apache: writesNot,
		},
		{
			name: "an element twice in a set", subject: "Containers", message: "0e000a 08 00000002 00000001 00000001 00",
			ours: takesIt, kitex: takesIt, apache: writesNot,
		},
		{
			name: "of two equal structs as keys the first", subject: "Containers", message: "0d0015 0c0b 00000002 00 00000001 61 00 00000001 62 00", marker: "00000001 61",
			ours: dropsIt, kitex: keepsIt, apache: keepsIt,
		},
		{
			name: "an optional field that has its default", subject: "Defaults", message: "08000e 0000004d 0b000d 00000000 00", marker: "08000e 0000004d",
			ours: keepsIt, kitex: dropsIt, apache: dropsIt,
		},
	}
}

// outcome says what a codec made of a message, and meaning what should have come of it.
func (d difference) outcome(t *testing.T, r *record, message []byte, meaning string, got result) string {
	switch {
	case got.refused != nil && strings.HasPrefix(got.refused.Error(), "panic:"):
		return panics
	case got.refused != nil:
		return refuses
	case got.unwritten != nil:
		return writesNot
	}
	w := &walker{message: got.written, depth: 1000}
	written, _, err := w.record(r, 0, 1)
	switch {
	case err == nil && d.marker != "" && bytes.Contains(got.written, unhex(t, d.marker)):
		return keepsIt
	case err == nil && d.marker != "":
		return dropsIt
	case err != nil || written != meaning:
		return misreads
	case got.used != len(message):
		return endsEarly
	}
	return takesIt
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func subjectOf(t *testing.T, name string) *subject {
	t.Helper()
	for _, s := range subjects() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

func TestDifferences_AreAsListed(t *testing.T) {
	for _, d := range differences() {
		t.Run(d.name, func(t *testing.T) {
			s, message := subjectOf(t, d.subject), unhex(t, d.message)
			w := &walker{message: message, depth: 1000}
			if d.meaning != "" {
				w.message = unhex(t, d.meaning)
			}
			meaning, _, err := w.record(s.record, 0, 1)
			if err != nil && d.ours == takesIt {
				t.Fatal(err)
			}
			for _, of := range []struct {
				who, want string
				got       result
			}{
				{"we", d.ours, s.byOurs(message, thrift.UnmarshalConfig{})}, {"Kitex", d.kitex, s.byKitex(message)}, {"Apache", d.apache, s.byApache(message)},
			} {
				if got := d.outcome(t, s.record, message, meaning, of.got); got != of.want {
					t.Errorf("%s: %s, want %s", of.who, got, of.want)
				}
			}
		})
	}
}

// TestDifferences_AreInTheDocument wants the table to have these lines and no others.
func TestDifferences_AreInTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/protocol/thrift.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "| message | Fulmar | Kitex | Apache Thrift |\n|---|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var want strings.Builder
	for _, d := range differences() {
		fmt.Fprintf(&want, "| %s | %s | %s | %s |\n", d.name, d.ours, d.kitex, d.apache)
	}
	if table+"\n" != want.String() {
		t.Errorf("docs/protocol/thrift.md has\n%s\nwant\n%s", table, want.String())
	}
}

// TestDifferences_DeclaredElementsAreAllocatedByKitex has a set of structs that
// declares 65,536 of them and ends. It is why the peers are not given such messages: a
// count of 2^31 would end the process.
func TestDifferences_DeclaredElementsAreAllocatedByKitex(t *testing.T) {
	s, message := subjectOf(t, "Containers"), unhex(t, "0e000c 0c 00010000")
	const most, least = 4 << 10, 1 << 20
	// The least of several: the runtime allocates as well, whenever it likes.
	allocated := func(read func() result) uint64 {
		least := uint64(math.MaxUint64)
		for range 10 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := read()
			runtime.ReadMemStats(&after)
			if r.refused == nil {
				t.Error("accepted")
			}
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	if got := allocated(func() result { return s.byOurs(message, thrift.UnmarshalConfig{}) }); got > most {
		t.Errorf("we allocate %d bytes, want at most %d", got, most)
	}
	if got := allocated(func() result { return s.byApache(message) }); got > most {
		t.Errorf("Apache allocates %d bytes, want at most %d", got, most)
	}
	if got := allocated(func() result { return s.byKitex(message) }); got < least {
		t.Errorf("Kitex allocates %d bytes, want at least %d: it can be given such messages now", got, least)
	}
}
