package grpc_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
)

func TestGzip_RoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 5000, 100_000} {
		message := bytes.Repeat([]byte{7}, n)
		packed := grpc.Deflate(nil, [][]byte{message[:n/2], message[n/2:]})
		got, err := grpc.Inflate([]byte("x"), packed, n)
		if err != nil || string(got) != "x"+string(message) {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
		if n == 0 {
			continue
		}
		failed := new(grpc.Error)
		if _, err := grpc.Inflate(nil, packed, n-1); !errors.As(err, &failed) || failed.Code != grpc.ResourceExhausted {
			t.Errorf("%d bytes with a limit below: %v", n, err)
		}
	}
}

// FuzzInflate: any bytes as a message in gzip are one within the limit, or an error with a
// code, and memory follows what comes out.
func FuzzInflate(f *testing.F) {
	f.Add(grpc.Deflate(nil, [][]byte{bytes.Repeat([]byte("fulmar"), 1000)}), 10_000)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, 10)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		got, err := grpc.Inflate(nil, b, limit)
		failed := new(grpc.Error)
		if err != nil && (!errors.As(err, &failed) || got != nil) || len(got) > limit || cap(got) > 4*limit+8<<10 {
			t.Errorf("%d bytes in %d, limit %d: %v", len(got), cap(got), limit, err)
		}
		if err != nil {
			return
		}
		if again, err := grpc.Inflate(nil, grpc.Deflate(nil, [][]byte{got}), limit); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%d bytes packed again: %d, %v", len(got), len(again), err)
		}
	})
}
