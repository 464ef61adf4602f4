package http2

import (
	"errors"

	"golang.org/x/net/http2/hpack"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Field is a header field. One that is Sensitive is never put into a table, which
// is also right for values that do not come again.
type Field = hpack.HeaderField

// fieldOverhead is what RFC 9113, 10.5.1 counts for a field beyond its text.
const fieldOverhead = 32

// fieldsKept bounds the list of fields that a connection keeps between blocks, in
// fields: 2.5 KiB.
const fieldsKept = 64

// fieldsBytes returns the size of a list of fields as SETTINGS_MAX_HEADER_LIST_SIZE
// counts it.
func fieldsBytes(fields []Field) int {
	size := 0
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value) + fieldOverhead
	}
	return size
}

// HeaderReader decodes header blocks (RFC 7541). Its table is the connection's, so
// it must see each block, in order, whatever becomes of its stream.
type HeaderReader struct {
	decoder *hpack.Decoder
	limit   int
	fields  []Field
	size    int
	// counted is up to which size fields are made, which are kept up to limit only.
	counted int
	// tooLarge says that fields were left out.
	tooLarge bool
}

// NewHeaderReader returns a HeaderReader for lists of limit bytes.
func NewHeaderReader(limit int) *HeaderReader {
	r := &HeaderReader{limit: limit}
	r.decoder = hpack.NewDecoder(limits.HTTP2TableBytes, r.keep)
	// Blocks are shorter (blockFits), so this is for lengths that only claim to be there. Text is
	// up to 8/5 as long as on the wire.
	r.decoder.SetMaxStringLength(2 * blocksPerList * limit)
	return r
}

// Read decodes a whole block. The fields are valid until the next Read, their texts
// for ever. With tooLarge they are those that fit the limit: the others changed the
// table and were made into nothing.
func (r *HeaderReader) Read(block []byte) (fields []Field, tooLarge bool, err error) {
	if cap(r.fields) > fieldsKept {
		r.fields = nil
	}
	clear(r.fields)
	r.fields, r.size, r.tooLarge = r.fields[:0], 0, false
	r.decoder.SetEmitEnabled(true)
	if n := sizeUpdate(block); n > 0 {
		// A block may begin with two changes of the table's size, the smallest that it had
		// and the last (RFC 7541, 4.2). The decoder refuses the second one of a block unless
		// its table is empty, so the first one is given to it as a block of its own.
		err = r.decode(block[:n])
		block = block[n:]
	}
	if err == nil {
		err = r.decode(block)
	}
	switch {
	case errors.Is(err, hpack.ErrStringLength):
		return nil, true, connectionError(EnhanceYourCalm, "header field of more than %d bytes", 2*blocksPerList*r.limit)
	case err == errBomb:
		return nil, true, connectionError(EnhanceYourCalm, "headers of more than %d bytes in %d (limit %d)", bombLists*r.limit, r.limit/headPart, r.limit)
	case err != nil:
		// RFC 9113, 4.3: the table is not what the peer believes any more.
		return nil, false, connectionError(CompressionError, "header block of %d bytes: %v", len(block), err)
	}
	return r.fields, r.tooLarge, nil
}

// errBomb is why the rest of a block is not read.
var errBomb = errors.New("a list of headers that is packed to be one")

// A list is made to be too long if bombLists times its limit is in a block's first part, a headPart
// of its limit: 64 times as long as what it is packed in. What others send does not get there.
// Huffman's code makes a text shorter by 5 to 8, a field that is new takes 3 bytes and counts for
// 35 or so, and one that is said again takes one byte and counts for 33 and more: only those whose
// texts have 32 bytes, said again a thousand times, are as long.
const (
	headPart  = 16
	bombLists = blocksPerList
)

func (r *HeaderReader) decode(block []byte) error {
	head := min(len(block), r.limit/headPart)
	r.counted = bombLists * r.limit
	if _, err := r.decoder.Write(block[:head]); err != nil {
		return err
	}
	if r.size > r.counted {
		return errBomb
	}
	r.counted = r.limit
	if r.size > r.counted {
		r.decoder.SetEmitEnabled(false)
	}
	if head < len(block) {
		if _, err := r.decoder.Write(block[head:]); err != nil {
			return err
		}
	}
	return r.decoder.Close()
}

// sizeUpdate returns how long the change of the table's size is that a block begins
// with, 0 if it does not (RFC 7541, 6.3).
func sizeUpdate(block []byte) int {
	const prefix = 1<<5 - 1
	switch {
	case len(block) == 0 || block[0]>>5 != 1:
		return 0
	case block[0]&prefix != prefix:
		return 1
	}
	for i := 1; i < len(block); i++ {
		if block[i] < 0x80 {
			return i + 1
		}
	}
	return 0 // It does not end, which is for the decoder to say.
}

// keep counts a field before it is stored.
func (r *HeaderReader) keep(f Field) {
	r.size += len(f.Name) + len(f.Value) + fieldOverhead
	if r.size > r.counted {
		r.decoder.SetEmitEnabled(false)
	}
	if r.size > r.limit {
		r.tooLarge = true
		return
	}
	r.fields = append(r.fields, f)
}

// blockBytesKept bounds the memory that a HeaderWriter keeps between blocks.
const blockBytesKept = 4 << 10

// HeaderWriter encodes header blocks. Its table is as large as the peer allows, and
// at most HTTP2TableBytes.
type HeaderWriter struct {
	encoder *hpack.Encoder
	block   blockBuffer
}

type blockBuffer struct{ bytes []byte }

func (b *blockBuffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}

// NewHeaderWriter returns a HeaderWriter with the table that peers have at first.
func NewHeaderWriter() *HeaderWriter {
	w := new(HeaderWriter)
	w.encoder = hpack.NewEncoder(&w.block)
	return w
}

// SetTable obeys the peer's SETTINGS_HEADER_TABLE_SIZE. A table that was made smaller
// stays so: one that grows again between two blocks takes two changes of its size in
// the next one, which decoders in Go refuse.
func (w *HeaderWriter) SetTable(bytes uint32) {
	if bytes < w.encoder.MaxDynamicTableSize() {
		w.encoder.SetMaxDynamicTableSize(bytes)
	}
}

// Write encodes fields. The block is valid until the next Write.
func (w *HeaderWriter) Write(fields []Field) []byte {
	if cap(w.block.bytes) > blockBytesKept {
		w.block.bytes = nil
	}
	w.block.bytes = w.block.bytes[:0]
	for _, f := range fields {
		// It fails only if the Writer does, which this one cannot.
		_ = w.encoder.WriteField(f)
	}
	return w.block.bytes
}
