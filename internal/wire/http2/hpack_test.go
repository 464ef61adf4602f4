package http2_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
	"golang.org/x/net/http2/hpack"
)

// TestHeaderReader_LeavesOutWhatIsTooMuch wants the fields that fit, and the table in
// step: what a field beyond the limit put there is found by the next block.
func TestHeaderReader_LeavesOutWhatIsTooMuch(t *testing.T) {
	writer := http2.NewHeaderWriter()
	reader := http2.NewHeaderReader(1000)
	var fields []http2.Field
	for i := range 20 {
		fields = append(fields, http2.Field{Name: fmt.Sprint("name-", i), Value: strings.Repeat("x", 61)})
	}
	got, tooLarge, err := reader.Read(writer.Write(fields))
	if err != nil || !tooLarge || len(got) != 10 {
		t.Fatalf("%d fields, too large %v, %v", len(got), tooLarge, err)
	}
	got, tooLarge, err = reader.Read(writer.Write(fields[12:15]))
	if err != nil || tooLarge || fmt.Sprint(got) != fmt.Sprint(fields[12:15]) {
		t.Fatalf("afterwards %v, too large %v, %v", got, tooLarge, err)
	}
}

// TestHeaderReader_Bombs measures what blocks of attackers make it allocate.
func TestHeaderReader_Bombs(t *testing.T) {
	entry := http2.Field{Name: "a", Value: strings.Repeat("x", 4000)}
	// A value of 16,400 bytes in a code of five bits each, 10 KiB: one more than may be.
	packed := hpack.AppendHuffmanString(nil, strings.Repeat("0", 16400))
	literal := append(append([]byte{0x00, 1, 'a', 0xff}, varint(len(packed)-127)...), packed...)
	for _, c := range []struct {
		name  string
		block func() []byte
		code  http2.ErrorCode
		bytes int64
	}{
		// 16,000 times the same entry of 4,000 bytes: 64 MB, if it were stored.
		{"references", func() []byte {
			return append(append([]byte{}, http2.NewHeaderWriter().Write([]http2.Field{entry})...), bytes.Repeat([]byte{0x80 | 62}, 16000)...)
		}, 0, 64 << 10},
		// Each byte counts for 42, and for 69.
		{"references only", func() []byte { return bytes.Repeat([]byte{0x88}, 2000) }, 0, 64 << 10},
		{"references to longer ones", func() []byte {
			return append(http2.NewHeaderWriter().Write([]http2.Field{{Name: "a", Value: strings.Repeat("x", 36)}}), bytes.Repeat([]byte{0x80 | 62}, 2000)...)
		}, http2.EnhanceYourCalm, 64 << 10},
		{"length of a gigabyte", func() []byte { return append([]byte{0x00, 1, 'a', 0x7f}, varint(1<<30)...) }, http2.EnhanceYourCalm, 4 << 10},
		{"long when unpacked", func() []byte { return literal }, 0, 96 << 10},
		{"index beyond the table", func() []byte { return []byte{0xff, 0x80, 0x01} }, http2.CompressionError, 4 << 10},
		{"table larger than allowed", func() []byte { return append([]byte{0x3f}, varint(4097-31)...) }, http2.CompressionError, 4 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			block := c.block()
			var tooLarge bool
			var err error
			got := testkit.Allocated(c.bytes, func() {
				_, tooLarge, err = http2.NewHeaderReader(limits.HTTP2HeaderListBytes).Read(block)
			})
			var problem *http2.Error
			if errors.As(err, &problem); err == nil && (c.code != 0 || !tooLarge) || err != nil && problem.Code != c.code {
				t.Fatalf("too large %v, %v", tooLarge, err)
			}
			if got > c.bytes {
				t.Errorf("allocated %d bytes, at most %d", got, c.bytes)
			}
		})
	}
}

// varint is the part of an integer of HPACK behind its prefix.
func varint(n int) []byte {
	var b []byte
	for ; n >= 128; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// FuzzHeaderReader decodes two blocks, one behind the other: as a decoder without
// limits does, as long as the limits allow.
func FuzzHeaderReader(f *testing.F) {
	f.Add([]byte{0x82, 0x86, 0x84}, []byte{0x40, 1, 'a', 1, 'b'})
	f.Add([]byte{0x40, 1, 'a', 1, 'b'}, []byte{0xbe})
	f.Add([]byte{0x20, 0x3f, 0xe1, 0x1f}, []byte{0x10, 1, 'a', 0x81, 0x1f})
	f.Add(append([]byte{0x40, 1, 'a', 100}, make([]byte, 100)...), bytes.Repeat([]byte{0xbe}, 20))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		const limit = 500
		reader := http2.NewHeaderReader(limit)
		oracle := hpack.NewDecoder(limits.HTTP2TableBytes, nil)
		for _, block := range [][]byte{first, second} {
			want, wantError := oracle.DecodeFull(block)
			size := 0
			longest := 0
			for _, field := range want {
				size += int(field.Size())
				longest = max(longest, len(field.Name), len(field.Value))
			}
			got, tooLarge, err := reader.Read(block)
			switch {
			case err != nil && tooLarge && size > limit:
				return // It was made to be so long, or has a text that is.
			case err != nil && wantError == nil && longest <= 8*limit:
				t.Fatalf("% x: %v", block, err)
			case err != nil:
				return
			case wantError != nil && len(block) > 0 && block[0]>>5 == 1:
				return // They take one change of the table's size only.
			case wantError != nil && !tooLarge:
				t.Fatalf("% x: accepted, but %v", block, wantError)
			case wantError != nil:
				return // A text that we did not make.
			case tooLarge != (size > limit):
				t.Fatalf("% x: %d bytes (limit %d), too large %v", block, size, limit, tooLarge)
			}
			for i, field := range got {
				if field != want[i] {
					t.Fatalf("% x: field %d is %v, want %v", block, i, field, want[i])
				}
			}
			if !tooLarge && len(got) != len(want) {
				t.Fatalf("% x: %d fields, want %d", block, len(got), len(want))
			}
			if again, _, err := http2.NewHeaderReader(limit).Read(http2.NewHeaderWriter().Write(got)); err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
				t.Fatalf("written and read again: %v, %v, want %v", again, err, got)
			}
		}
	})
}
