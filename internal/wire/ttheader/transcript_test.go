package ttheader_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// TestNext_Transcripts decodes the bytes in testdata. "decode" prints what comes
// out of them; "decode limit=N" does so with a message limit of N bytes instead
// of 1,000. Everything is decoded again in two pieces, cut at every byte, and
// one byte at a time (S1 of the fault scenarios): the same must come out.
func TestNext_Transcripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			testkit.Transcript(t, file, func(command, input string) string {
				b, err := testkit.Hex(input)
				if err != nil {
					t.Fatal(err)
				}
				m := limitsOf(t, command)
				whole := decode(t, b, m, len(b))
				for cut := 1; cut < len(b); cut++ {
					if got := decode(t, b, m, cut); got != whole {
						t.Fatalf("% x\ncut at %d:\n%s, want\n%s", b, cut, got, whole)
					}
				}
				if got := dribble(t, b, m); got != whole {
					t.Fatalf("% x\none byte at a time:\n%s, want\n%s", b, got, whole)
				}
				return whole
			})
		})
	}
}

// limitsOf returns the limits that a command names.
func limitsOf(t *testing.T, command string) limits.Message {
	t.Helper()
	m := limits.Message{Bytes: 1000, Depth: 4, DecodeBytesMax: limits.DecodeBytesMax}
	rest, ok := strings.CutPrefix(command, "decode")
	if !ok {
		t.Fatalf("unknown command %q", command)
	}
	if limit, ok := strings.CutPrefix(rest, " limit="); ok {
		bytes, err := strconv.Atoi(limit)
		if err != nil {
			t.Fatal(err)
		}
		m.Bytes = bytes
	} else if rest != "" {
		t.Fatalf("unknown command %q", command)
	}
	return m
}

// decode returns what comes out of b when the first cut bytes arrive before the
// others.
func decode(t *testing.T, b []byte, m limits.Message, cut int) string {
	t.Helper()
	r := receiver{t: t, limits: m}
	r.arrive(b[:cut])
	r.arrive(b[cut:])
	return r.finish()
}

func dribble(t *testing.T, b []byte, m limits.Message) string {
	t.Helper()
	r := receiver{t: t, limits: m}
	for i := range b {
		r.arrive(b[i : i+1])
	}
	return r.finish()
}

// receiver is a connection: it keeps what is not decoded yet, throws away what
// refused messages leave, and ends after an error or the last message.
type receiver struct {
	t       *testing.T
	limits  limits.Message
	arrived []byte
	discard int
	need    int
	ended   bool
	out     strings.Builder
}

func (r *receiver) arrive(b []byte) {
	r.t.Helper()
	r.arrived = append(r.arrived, b...)
	for !r.ended {
		n := min(r.discard, len(r.arrived))
		r.arrived, r.discard = r.arrived[n:], r.discard-n
		if r.discard > 0 || len(r.arrived) == 0 {
			return
		}
		message, used, need, err := ttheader.Next(r.arrived, r.limits)
		switch {
		case err != nil:
			fmt.Fprintf(&r.out, "error: %v\n", err)
			r.ended = true
			return
		case used == 0:
			if need <= len(r.arrived) {
				r.t.Fatalf("have %d bytes, need %d", len(r.arrived), need)
			}
			r.need = need
			return
		case used > len(r.arrived) && message.Invalid == nil:
			r.t.Fatalf("a good message of %d bytes, of which %d are there", used, len(r.arrived))
		}
		r.describe(message)
		if r.ended = message.Last; r.ended {
			r.out.WriteString("  last\n")
		}
		r.discard = used
	}
}

// finish returns what came out, and what is still awaited.
func (r *receiver) finish() string {
	switch {
	case r.ended:
	case r.discard > 0:
		fmt.Fprintf(&r.out, "%d bytes to throw away\n", r.discard)
	case len(r.arrived) > 0:
		fmt.Fprintf(&r.out, "have %d bytes, need %d\n", len(r.arrived), r.need)
	}
	return r.out.String()
}

func (r *receiver) describe(message wire.Message) {
	fmt.Fprintf(&r.out, "%v %v %q, sequence ids %d in header and %d in message", message.Protocol, message.Type, message.Name, message.HeaderSequence, message.Sequence)
	if message.Payload != wire.PayloadThrift {
		fmt.Fprintf(&r.out, ", payload %v", message.Payload)
	}
	if message.Flags != 0 {
		fmt.Fprintf(&r.out, ", flags %#04x", message.Flags)
	}
	if message.Body != nil {
		fmt.Fprintf(&r.out, ", body % x", message.Body)
	}
	r.out.WriteString("\n")
	for key, value := range message.Info.Strings() {
		fmt.Fprintf(&r.out, "  %s: %q\n", key, value)
	}
	for key, value := range message.Info.Ints() {
		fmt.Fprintf(&r.out, "  %d: %q\n", key, value)
	}
	if message.Invalid != nil {
		fmt.Fprintf(&r.out, "  invalid: %v\n", message.Invalid)
	}
}
