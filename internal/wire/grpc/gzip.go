package grpc

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
)

// Gzip is the name of the one encoding of messages that there is, as grpc-encoding has
// it.
const Gzip = "gzip"

// inflatePiece is how much memory is taken first; it doubles as bytes come out.
const inflatePiece = 4 << 10

// Inflate appends what a message was before it was compressed with gzip, of at most limit
// bytes. Memory follows the bytes that come out.
func Inflate(dst, message []byte, limit int) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(message))
	if err != nil {
		return nil, badGzip(err)
	}
	begin := len(dst)
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, max(inflatePiece, len(dst)))
		}
		n, err := reader.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-begin > limit:
			return nil, &Error{Code: ResourceExhausted, Detail: fmt.Sprintf("message of more than %d bytes when it is inflated (limit %d)", limit, limit)}
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, badGzip(err)
		}
	}
}

func badGzip(err error) error {
	return &Error{Code: Internal, Detail: "message that is compressed: " + err.Error()}
}

// Deflate appends a message in gzip, whose pieces these are.
func Deflate(dst []byte, pieces [][]byte) []byte {
	out := bytes.NewBuffer(dst)
	writer := gzip.NewWriter(out)
	for _, piece := range pieces {
		_, _ = writer.Write(piece) // a bytes.Buffer takes everything
	}
	_ = writer.Close()
	return out.Bytes()
}
