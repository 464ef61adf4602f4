package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// gzipName is the one encoding of messages in gRPC that there is. Others would stand beside
// it in headers, acceptsGzip and gzipCodec.
const gzipName = "gzip"

// identityName is what no encoding is called.
const identityName = "identity"

// acceptsGzip reports whether a grpc-accept-encoding has it.
func acceptsGzip(list string) bool {
	for word := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(word) == gzipName {
			return true
		}
	}
	return false
}

// gzipCodec compresses messages of a server or a client. It keeps what that takes, 40 KB to
// read and 800 KB to write. The zero value is ready to use. Safe for concurrent use.
type gzipCodec struct {
	// readers holds *gzip.Reader, writers *gzip.Writer.
	readers sync.Pool
	writers sync.Pool
	// turns has room for as many messages as may be inflated beyond inflateAtOnce at a time;
	// nil for any number.
	turns chan struct{}
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

// inflation is a message that is being inflated.
type inflation struct {
	codec   *gzipCodec
	limit   int
	buffers *linkbuf.Pool
	// budget counts what it takes, charged so far; nil for none.
	budget  *budget
	charged int
	// turn: it has one of the codec's.
	turn bool
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
func (c *gzipCodec) inflate(ctx context.Context, message []byte, limit int, buffers *linkbuf.Pool, budget *budget) (out []byte, charged int, err error) {
	// The last four bytes are how long it was (RFC 1952), or its last part. Who tells the
	// truth need not be tried.
	if n := len(message); n >= 18 && message[0] == 0x1f && message[1] == 0x8b && int64(binary.LittleEndian.Uint32(message[n-4:])) > int64(limit) {
		return nil, 0, tooLongInflated(limit)
	}
	i := inflation{codec: c, limit: limit, buffers: buffers, budget: budget}
	err = i.run(ctx, message)
	if err == nil {
		out = i.join()
	}
	for _, piece := range i.pieces {
		buffers.Put(piece)
	}
	if i.turn {
		<-c.turns
	}
	if err != nil && i.charged > 0 {
		budget.give(i.charged)
		i.charged = 0
	}
	return out, i.charged, err
}

func (i *inflation) run(ctx context.Context, message []byte) error {
	reader, ok := i.codec.readers.Get().(*gzip.Reader)
	if !ok {
		reader = new(gzip.Reader)
	}
	// One that has failed is as good as new once it is reset.
	defer i.codec.readers.Put(reader)
	if err := reader.Reset(bytes.NewReader(message)); err != nil {
		return badGzip(err)
	}
	for {
		if err := i.grow(ctx); err != nil {
			return err
		}
		piece := &i.pieces[len(i.pieces)-1]
		n, err := reader.Read((*piece)[len(*piece):cap(*piece)])
		*piece = (*piece)[:len(*piece)+n]
		i.length += n
		switch {
		case i.length > i.limit:
			return i.wasted(tooLongInflated(i.limit))
		case err == io.EOF:
			return nil
		case err != nil:
			return i.wasted(badGzip(err))
		}
	}
}

// wasted marks the error of a message that has taken long: its sender is to blame for it, as
// he is not if there is no room.
func (i *inflation) wasted(err error) error {
	if i.length < inflateAtOnce {
		return err
	}
	return &wastedError{err}
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
			return &grpc.Error{Code: grpc.Canceled, Detail: "the call ended before its message was inflated"}
		}
	}
	size := min(max(i.length, inflatePieceMin), inflatePieceMax)
	if all := i.length + size; i.budget != nil && all >= budgetBytesMin {
		if err := i.budget.takePart(all - i.charged); err != nil {
			return err
		}
		i.charged = all
	}
	i.pieces = append(i.pieces, i.buffers.Get(size))
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

func badGzip(err error) error {
	return &grpc.Error{Code: grpc.Internal, Detail: "message that is compressed, but no gzip: " + err.Error()}
}

// deflate returns a message behind its prefix. The pieces begin with the prefix that it has
// without compression.
func (c *gzipCodec) deflate(pieces [][]byte, length int) []byte {
	var out bytes.Buffer
	out.Grow(length / 2)
	out.Write(make([]byte, grpc.PrefixSize))
	writer, ok := c.writers.Get().(*gzip.Writer)
	if ok {
		writer.Reset(&out)
	} else {
		writer = gzip.NewWriter(&out)
	}
	skip := grpc.PrefixSize
	for _, piece := range pieces {
		part := piece[min(skip, len(piece)):]
		skip -= len(piece) - len(part)
		_, _ = writer.Write(part) // a bytes.Buffer takes everything
	}
	_ = writer.Close()
	c.writers.Put(writer)
	b := out.Bytes()
	grpc.PutPrefix(b, len(b)-grpc.PrefixSize, true)
	return b
}
