package server_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
)

// deflate is a compressor of grpc-go that counts what it reads.
type deflate struct{ read *atomic.Int32 }

func (deflate) Name() string { return "deflate" }

func (deflate) Compress(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

func (d deflate) Decompress(r io.Reader) (io.Reader, error) {
	d.read.Add(1)
	return zlib.NewReader(r)
}

// TestEncodings_OfUsers: a client of grpc-go compresses with an encoding of its own, which
// the server has been given, and gets its answers in it.
func TestEncodings_OfUsers(t *testing.T) {
	read := new(atomic.Int32)
	encoding.RegisterCompressor(deflate{read})
	ours := fulmar.Encoding{
		Name:      "deflate",
		NewWriter: func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		NewReader: func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
	}
	address, _ := serve(t, fulmar.ServerConfig{Encodings: []fulmar.Encoding{ours}, MaxMessageBytes: 1 << 20}, map[string]handler{"Say": echo})
	conn := dial(t, address)
	for i, size := range []int{0, 100, 10_000, 1 << 19} {
		in := bytes.Repeat([]byte{byte(i)}, size)
		out, err := call(within(t), conn, "Say", in, grpc.UseCompressor("deflate"))
		if err != nil || !bytes.Equal(in, out) {
			t.Errorf("%d bytes: got %d bytes, %v", size, len(out), err)
		}
	}
	if read.Load() != 2 { // The two short answers are sent as they are.
		t.Errorf("%d answers were compressed", read.Load())
	}
	if _, err := call(within(t), conn, "Say", make([]byte, 2<<20), grpc.UseCompressor("deflate")); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("message that is too long when it is inflated: %v", err)
	}
	plain, _ := serve(t, fulmar.ServerConfig{}, map[string]handler{"Say": echo})
	if _, err := call(within(t), dial(t, plain), "Say", make([]byte, 1000), grpc.UseCompressor("deflate")); status.Code(err) != codes.Unimplemented {
		t.Errorf("a server that does not know it: %v", err)
	}
}
