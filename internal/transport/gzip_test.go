package transport

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

// packed returns a message in gzip without its prefix.
func packed(c *gzipCodec, message []byte) []byte {
	prefixed := append(make([]byte, grpc.PrefixSize), message...)
	half := len(prefixed) / 2
	return c.deflate([][]byte{prefixed[:half], prefixed[half:]}, len(prefixed))[grpc.PrefixSize:]
}

func TestGzip_RoundTrip(t *testing.T) {
	var codec gzipCodec
	buffers := linkbuf.NewPool()
	for _, n := range []int{0, 1, 5000, 100_000} {
		message := bytes.Repeat([]byte{7}, n)
		got, err := codec.inflate(packed(&codec, message), n, buffers)
		if err != nil || !bytes.Equal(got, message) {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
		buffers.Put(got)
		if n == 0 {
			continue
		}
		failed := new(grpc.Error)
		if _, err := codec.inflate(packed(&codec, message), n-1, buffers); !errors.As(err, &failed) || failed.Code != grpc.ResourceExhausted {
			t.Errorf("%d bytes with a limit below: %v", n, err)
		}
	}
	if n := buffers.Outstanding(); n != 0 {
		t.Errorf("%d pieces of memory not given back", n)
	}
}

// FuzzInflate: any bytes as a message in gzip are one within the limit, or an error with a
// code, in memory that follows it.
func FuzzInflate(f *testing.F) {
	var codec gzipCodec
	f.Add(packed(&codec, bytes.Repeat([]byte("fulmar"), 1000)), 10_000)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, 10)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		var codec gzipCodec
		buffers := linkbuf.NewPool()
		got, err := codec.inflate(b, limit, buffers)
		failed := new(grpc.Error)
		if err != nil && (!errors.As(err, &failed) || got != nil) || len(got) > limit || cap(got) > 4*limit+8<<10+4*len(b) {
			t.Errorf("%d bytes in %d, limit %d: %v", len(got), cap(got), limit, err)
		}
		if err == nil {
			again, err := codec.inflate(packed(&codec, got), limit, buffers)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("%d bytes packed again: %d, %v", len(got), len(again), err)
			}
			buffers.Put(got)
			buffers.Put(again)
		}
		if n := buffers.Outstanding(); n != 0 {
			t.Errorf("%d pieces of memory not given back", n)
		}
	})
}
