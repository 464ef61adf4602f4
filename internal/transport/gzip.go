package transport

import (
	"bytes"
	"compress/gzip"
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
}

// inflatePiece is how much memory what comes out of a message gets at first.
const inflatePiece = 4 << 10

// inflate returns what a message was, in memory of buffers. That follows what comes out,
// which is no more than limit bytes.
func (c *gzipCodec) inflate(message []byte, limit int, buffers *linkbuf.Pool) ([]byte, error) {
	reader, ok := c.readers.Get().(*gzip.Reader)
	if !ok {
		reader = new(gzip.Reader)
	}
	if err := reader.Reset(bytes.NewReader(message)); err != nil {
		return nil, badGzip(err)
	}
	out := buffers.Get(min(max(inflatePiece, 2*len(message)), limit+1))
	for {
		if len(out) == cap(out) {
			more := append(buffers.Get(2*cap(out)), out...)
			buffers.Put(out)
			out = more
		}
		n, err := reader.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case len(out) > limit:
			buffers.Put(out)
			return nil, &grpc.Error{Code: grpc.ResourceExhausted, Detail: fmt.Sprintf("message of more than %d bytes when it is inflated (limit %d)", limit, limit)}
		case err == io.EOF:
			c.readers.Put(reader)
			return out, nil
		case err != nil:
			buffers.Put(out)
			return nil, badGzip(err)
		}
	}
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
