package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// gzipName is the encoding of messages in gRPC that all sides know.
const gzipName = "gzip"

// identityName is what no encoding is called.
const identityName = "identity"

// Encoding is a way to compress messages in gRPC. NewWriter and NewReader begin a message;
// what they return is used again if it has Reset, as in package compress/gzip.
type Encoding struct {
	Name      string
	NewWriter func(io.Writer) io.WriteCloser
	NewReader func(io.Reader) (io.Reader, error)
}

// encodings are those that a server or a client knows, gzip the first of them. They do not
// change. The zero value knows none.
type encodings struct {
	all []*encoding
	// accepted is what grpc-accept-encoding says.
	accepted string
}

// newEncodings returns gzip and others. turns is how many messages may be inflated beyond
// inflateAtOnce at a time, 0 for any number.
func newEncodings(others []Encoding, turns int) encodings {
	var slots chan struct{}
	if turns > 0 {
		slots = make(chan struct{}, turns)
	}
	gzipped := Encoding{
		Name:      gzipName,
		NewWriter: func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		NewReader: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	}
	// Without identity servers of Kitex 0.16.3 that have not imported gzip fail each call.
	e := encodings{accepted: identityName}
	for _, one := range append([]Encoding{gzipped}, others...) {
		e.all = append(e.all, &encoding{Encoding: one, turns: slots})
		e.accepted += "," + one.Name
	}
	return e
}

// find returns the encoding of a name; nil if it is not known, or none.
func (e *encodings) find(name string) *encoding {
	for _, one := range e.all {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// known returns the names for an error.
func (e *encodings) known() string { return strings.ReplaceAll(e.accepted, ",", ", ") }

// accepts reports whether a grpc-accept-encoding has a name.
func accepts(list, name string) bool {
	for word := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(word) == name {
			return true
		}
	}
	return false
}

// encoding compresses messages of a server or a client. It keeps what that takes, for gzip
// 40 KB to read and 800 KB to write. Safe for concurrent use.
type encoding struct {
	Encoding
	// readers and writers hold what NewReader and NewWriter have made.
	readers sync.Pool
	writers sync.Pool
	// turns has room for as many messages as may be inflated beyond inflateAtOnce at a time;
	// nil for any number.
	turns chan struct{}
}

// reader returns what reads a message.
func (c *encoding) reader(message io.Reader) (io.Reader, error) {
	switch again := c.readers.Get().(type) {
	case interface{ Reset(io.Reader) error }:
		err := again.Reset(message)
		if err != nil {
			c.readers.Put(again) // as good as new once it is reset
		}
		return again.(io.Reader), err
	case interface{ Reset(io.Reader) }:
		again.Reset(message)
		return again.(io.Reader), nil
	}
	return c.NewReader(message)
}

// writer returns what writes a message.
func (c *encoding) writer(message io.Writer) io.WriteCloser {
	if again, ok := c.writers.Get().(interface {
		io.WriteCloser
		Reset(io.Writer)
	}); ok {
		again.Reset(message)
		return again
	}
	return c.NewWriter(message)
}

// inflateAtOnce is how much of a message is inflated whatever others do. Beyond it there are
// as many at a time as processors: it is done no later for that, and a few kilobytes that
// become 16 MiB (MessageBytes) each do not all become that at once.
const inflateAtOnce = 32 << 10

// inflatePieceMin and inflatePieceMax are how long the pieces of memory are that a message is
// inflated into. Each has as much as all before it together, so that short messages take
// little; all of them are used again, also if the message is refused in the end.
const (
	inflatePieceMin = 4 << 10
	inflatePieceMax = 256 << 10
)

// What becomes more than measureRatio times its length, and more than measureMin, is read to
// its end before it is kept: a few kilobytes take no 16 MiB (MessageBytes) to be refused, only
// what they may be. It is inflated twice if that is not too much; gzip makes JSON and Protobuf
// 3 to 20 times shorter, so it is zeros mostly. S20's gzip bombs (20 KiB for 20 MiB, 8
// connections) took 8.4 MiB for each connection before, and what the collector lets a heap grow
// to behind them was most of the 130 MiB of all its attacks.
const (
	measureRatio = 64
	measureMin   = 1 << 20
)

// inflation is a message that is being inflated.
type inflation struct {
	codec   *encoding
	limit   int
	buffers *linkbuf.Pool
	// budget counts what it takes, charged so far; nil for none.
	budget  *budget
	charged int
	// turn: it has one of the codec's.
	turn bool
	// whole is its length once it is measured, 0 before.
	whole int
	// pieces are full but for the last one, and have length bytes together.
	pieces [][]byte
	length int
}

// wastedError is why a message was inflated in vain, at some length.
type wastedError struct{ error }

// Unwrap returns what is wrong with the message.
func (e *wastedError) Unwrap() error { return e.error }

// inflate returns what a message was, in memory of buffers. That follows what comes out,
// which is no more than limit bytes. It returns what of that budget has counted, which its
// caller gives back. ctx ends when nobody wants to know any more.
func (c *encoding) inflate(ctx context.Context, message []byte, limit int, buffers *linkbuf.Pool, budget *budget) (out []byte, charged int, err error) {
	// The last four bytes are how long it was (RFC 1952), or its last part. Who tells the
	// truth need not be tried.
	if n := len(message); c.Name == gzipName && n >= 18 && message[0] == 0x1f && message[1] == 0x8b && int64(binary.LittleEndian.Uint32(message[n-4:])) > int64(limit) {
		return nil, 0, tooLongInflated(limit)
	}
	i := inflation{codec: c, limit: limit, buffers: buffers, budget: budget}
	err = i.run(ctx, message)
	if err == nil {
		out = i.join()
	}
	i.forget()
	if i.turn {
		<-c.turns
	}
	if err != nil && i.charged > 0 {
		budget.give(i.charged)
		i.charged = 0
	}
	return out, i.charged, err
}

func (i *inflation) run(ctx context.Context, message []byte) (err error) {
	defer func() {
		// Somebody else's code may panic about what a peer has sent.
		if cause := recover(); cause != nil {
			err = i.bad(fmt.Errorf("panic: %v", cause))
		}
	}()
	reader, err := i.codec.reader(bytes.NewReader(message))
	if err != nil {
		return i.bad(err)
	}
	for idle := 0; ; {
		if i.suspect(message) {
			if err := i.measure(ctx, reader); err != nil {
				i.codec.readers.Put(reader)
				return err
			}
			i.codec.readers.Put(reader)
			if reader, err = i.codec.reader(bytes.NewReader(message)); err != nil {
				return i.bad(err)
			}
		}
		if err := i.grow(ctx); err != nil {
			return err
		}
		piece := &i.pieces[len(i.pieces)-1]
		n, err := reader.Read((*piece)[len(*piece):cap(*piece)])
		*piece = (*piece)[:len(*piece)+n]
		i.length += n
		if idle++; n > 0 {
			idle = 0
		}
		switch {
		case i.length > i.limit:
			err = i.wasted(tooLongInflated(i.limit))
		case err == io.EOF:
			i.codec.readers.Put(reader)
			return nil
		case err != nil:
			err = i.wasted(i.bad(err))
		case idle > readsOfNothing:
			err = i.bad(io.ErrNoProgress)
		default:
			continue
		}
		// One that has failed is as good as new once it is reset.
		i.codec.readers.Put(reader)
		return err
	}
}

// suspect reports whether a message becomes so much that it is measured before more is kept.
func (i *inflation) suspect(message []byte) bool {
	return i.whole == 0 && i.length >= measureMin && i.length/measureRatio >= len(message)
}

// measure reads a message to its end, and forgets what was inflated.
func (i *inflation) measure(ctx context.Context, reader io.Reader) error {
	scratch := i.pieces[len(i.pieces)-1]
	scratch = scratch[:cap(scratch)]
	sinceTurn := 0
	for whole, idle := i.length, 0; ; {
		n, err := reader.Read(scratch)
		whole += n
		if idle++; n > 0 {
			idle = 0
		}
		switch {
		case whole > i.limit:
			return i.wasted(tooLongInflated(i.limit))
		case err == io.EOF:
			i.forget()
			i.length, i.whole = 0, whole
			return nil
		case err != nil:
			return i.wasted(i.bad(err))
		case idle > readsOfNothing:
			return i.bad(io.ErrNoProgress)
		}
		if sinceTurn += n; sinceTurn >= inflatePieceMax {
			sinceTurn = 0
			if err := stillWanted(ctx); err != nil {
				return err
			}
		}
	}
}

// forget gives back the pieces.
func (i *inflation) forget() {
	for _, piece := range i.pieces {
		i.buffers.Put(piece)
	}
	i.pieces = nil
}

// readsOfNothing is how often a reader may return nothing and no error, as bufio has it.
const readsOfNothing = 100

// bad is the error for a message that is not what its header says.
func (i *inflation) bad(err error) error {
	return &grpc.Error{Code: grpc.Internal, Detail: "message that is compressed, but no " + i.codec.Name + ": " + err.Error()}
}

// wasted marks the error of a message that has taken long: its sender is to blame for it, as
// he is not if there is no room.
func (i *inflation) wasted(err error) error {
	if i.length < inflateAtOnce {
		return err
	}
	return &wastedError{err}
}

// inflatedForNobody is the error for a call that has ended meanwhile.
func inflatedForNobody() error {
	return &grpc.Error{Code: grpc.Canceled, Detail: "the call ended before its message was inflated"}
}

// grow makes room, if there is none.
func (i *inflation) grow(ctx context.Context) error {
	if n := len(i.pieces); n > 0 && len(i.pieces[n-1]) < cap(i.pieces[n-1]) {
		return nil
	}
	if i.length >= inflateAtOnce && !i.turn && i.codec.turns != nil {
		select {
		case i.codec.turns <- struct{}{}:
			i.turn = true
		case <-ctx.Done():
			return inflatedForNobody()
		}
	}
	if i.length >= inflateAtOnce {
		if err := stillWanted(ctx); err != nil {
			return err
		}
	}
	size := min(max(i.length, inflatePieceMin), inflatePieceMax)
	if i.whole > i.length {
		size = i.whole - i.length + 1 // one more, so that its end is read without another piece
	}
	if all := i.length + size; i.budget != nil && all >= budgetBytesMin {
		if err := i.budget.takePart(all - i.charged); err != nil {
			return err
		}
		i.charged = all
	}
	i.pieces = append(i.pieces, i.buffers.Get(size))
	return nil
}

// stillWanted lets others have the processor, and fails if nobody waits any more. Others would
// wait until the scheduler takes the processor away, 10 ms: p99 of calls beside the gzip bombs
// of S20, timed apart from its other attacks, was 25 ms in one run, and 15 and 7 in two with this.
func stillWanted(ctx context.Context) error {
	runtime.Gosched()
	if ctx.Err() != nil {
		return inflatedForNobody()
	}
	return nil
}

// join makes one piece of all.
func (i *inflation) join() []byte {
	if len(i.pieces) == 1 {
		out := i.pieces[0]
		i.pieces = nil
		return out
	}
	out := i.buffers.Get(i.length)
	for _, piece := range i.pieces {
		out = append(out, piece...)
	}
	return out
}

func tooLongInflated(limit int) error {
	return &grpc.Error{Code: grpc.ResourceExhausted, Detail: fmt.Sprintf("message of more than %d bytes when it is inflated (limit %d)", limit, limit)}
}

// deflateLeast is how long a message must be to be worth trying: less is not shorter.
const deflateLeast = 512

// deflate returns a message behind its prefix, nil if it cannot be compressed, or is no shorter
// then. The pieces, of that length, begin with the prefix that it has without compression.
func (c *encoding) deflate(pieces [][]byte, length int) (packed []byte) {
	defer func() {
		if recover() != nil {
			packed = nil // it goes as it is
		}
	}()
	var out bytes.Buffer
	out.Grow(length / 2)
	out.Write(make([]byte, grpc.PrefixSize))
	writer := c.writer(&out)
	skip := grpc.PrefixSize
	for _, piece := range pieces {
		part := piece[min(skip, len(piece)):]
		skip -= len(piece) - len(part)
		if _, err := writer.Write(part); err != nil {
			return nil
		}
	}
	if writer.Close() != nil {
		return nil
	}
	c.writers.Put(writer)
	b := out.Bytes()
	if len(b) >= length {
		return nil
	}
	grpc.PutPrefix(b, len(b)-grpc.PrefixSize, true)
	return b
}
