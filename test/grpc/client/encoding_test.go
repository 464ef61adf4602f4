package client_test

import (
	"compress/zlib"
	"io"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar"
)

// deflate is a compressor of grpc-go.
type deflate struct{}

func (deflate) Name() string { return "deflate" }

func (deflate) Compress(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

func (deflate) Decompress(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }

// TestEncodings_OfUsers: a server of grpc-go is sent messages in an encoding that both sides
// have been given, and answers in it.
func TestEncodings_OfUsers(t *testing.T) {
	encoding.RegisterCompressor(deflate{})
	var seen arrivals
	read := new(atomic.Int32)
	ours := fulmar.Encoding{
		Name:      "deflate",
		NewWriter: func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		NewReader: func(r io.Reader) (io.Reader, error) {
			read.Add(1)
			return zlib.NewReader(r)
		},
	}
	_, address := serve(t, &pantry{}, grpc.StatsHandler(&seen))
	_, api := dial(t, fulmar.ClientConfig{Target: address, Compression: "deflate", Encodings: []fulmar.Encoding{ours}})
	sent := jar(9000)
	got, err := api.Put(t.Context(), sent)
	if err != nil || !proto.Equal(got, sent) {
		t.Errorf("%v", err)
	}
	if header, long, wire := seen.take(); header != "deflate" || len(wire) != 1 || wire[0] > long[0]/2 {
		t.Errorf("encoding %q, %d bytes of %d were sent", header, wire, long)
	}
	if read.Load() != 1 {
		t.Errorf("%d answers were compressed", read.Load())
	}
}
