package fulmar_test

import (
	"compress/zlib"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// deflateUsed counts the messages that deflate has written and read.
type deflateUsed struct{ written, read atomic.Int32 }

// deflate returns an encoding that gRPC names so, which is that of package zlib.
func (u *deflateUsed) deflate() fulmar.Encoding {
	return fulmar.Encoding{
		Name:      "deflate",
		NewWriter: func(w io.Writer) io.WriteCloser { u.written.Add(1); return zlib.NewWriter(w) },
		NewReader: func(r io.Reader) (io.Reader, error) { u.read.Add(1); return zlib.NewReader(r) },
	}
}

// TestEncodings_BothWays: requests, answers and messages of streams are compressed with an
// encoding that both sides have been given.
func TestEncodings_BothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atServer, atClient deflateUsed
		s := newStreaming(t, "grpc", &feed{}, fulmar.ServerConfig{Encodings: []fulmar.Encoding{atServer.deflate()}},
			fulmar.ClientConfig{Compression: "deflate", Encodings: []fulmar.Encoding{atClient.deflate()}})
		long := &testservice.Item{Name: strings.Repeat("x", 10_000)}
		swap, err := s.api.Swap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := swap.Send(long); err != nil {
				t.Fatal(err)
			}
			if got, err := swap.Recv(); err != nil || got.Name != long.Name {
				t.Fatalf("another message comes back, %v", err)
			}
		}
		swap.Cancel()
		for who, used := range map[string]*deflateUsed{"server": &atServer, "client": &atClient} {
			if used.written.Load() == 0 || used.read.Load() == 0 {
				t.Errorf("the %s made %d writers and %d readers", who, used.written.Load(), used.read.Load())
			}
		}
	})
}

// TestEncodings_NotKnown: a server that does not know one says which it knows.
func TestEncodings_NotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used deflateUsed
		s := newStreaming(t, "grpc", &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Encodings: []fulmar.Encoding{used.deflate()}})
		calculator := testservice.NewCalculatorClient(s.client)
		_, err := calculator.Add(context.Background(), 1, 2, fulmar.Compression("deflate"))
		failed := asError(t, err)
		if failed.Code() != fulmar.Unimplemented || !strings.Contains(failed.Message(), `encoding "deflate" is not known here (known: identity, gzip)`) {
			t.Errorf("%v", err)
		}
		if _, err := calculator.Add(context.Background(), 1, 2, fulmar.Compression("snappy")); fulmar.CodeOf(err) != fulmar.InvalidArgument ||
			!strings.Contains(err.Error(), "known: identity, gzip, deflate") {
			t.Errorf("an encoding that the client does not know: %v", err)
		}
	})
}

func TestEncodings_Validate(t *testing.T) {
	var used deflateUsed
	good := used.deflate()
	many := make([]fulmar.Encoding, limits.GRPCEncodings+1)
	for i := range many {
		many[i] = good
		many[i].Name = strings.Repeat("a", i+1)
	}
	for want, list := range map[string][]fulmar.Encoding{
		`Encodings[0]: "" is no name`:                    {{NewWriter: good.NewWriter, NewReader: good.NewReader}},
		`Encodings[0]: "Brotli" is no name`:              {{Name: "Brotli", NewWriter: good.NewWriter, NewReader: good.NewReader}},
		`Encodings[0]: "a,b" is no name`:                 {{Name: "a,b", NewWriter: good.NewWriter, NewReader: good.NewReader}},
		`Encodings[0]: "gzip" is there already`:          {{Name: "gzip", NewWriter: good.NewWriter, NewReader: good.NewReader}},
		`Encodings[1]: "deflate" is there already`:       {good, good},
		`Encodings[0]: "zstd" lacks NewWriter or NewRea`: {{Name: "zstd", NewReader: good.NewReader}},
		"Encodings: 9 of them (limit 8)":                 many,
	} {
		server, client := fulmar.ServerConfig{Encodings: list}.Validate(), fulmar.ClientConfig{Target: "a:1", Encodings: list}.Validate()
		for _, err := range []error{server, client} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	config := fulmar.ClientConfig{Target: "a:1", Protocol: fulmar.GRPC, Compression: "deflate"}
	if err := config.Validate(); err == nil {
		t.Error("a compression that is not known was accepted")
	}
	config.Encodings = []fulmar.Encoding{good}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}

// serverEncodings and clientEncodings are the rows for both configurations.
func serverEncodings() map[string]field[fulmar.ServerConfig] {
	var used deflateUsed
	return map[string]field[fulmar.ServerConfig]{"Encodings": {
		observe: func(t *testing.T, config fulmar.ServerConfig) any {
			return addsWithDeflate(t, config, fulmar.ClientConfig{Encodings: []fulmar.Encoding{used.deflate()}})
		},
		settings: []setting{{nil, "unimplemented"}, {[]fulmar.Encoding{used.deflate()}, "ok"}},
	}}
}

func clientEncodings() map[string]field[fulmar.ClientConfig] {
	var used deflateUsed
	return map[string]field[fulmar.ClientConfig]{"Encodings": {
		observe: func(t *testing.T, config fulmar.ClientConfig) any {
			return addsWithDeflate(t, fulmar.ServerConfig{Encodings: []fulmar.Encoding{used.deflate()}}, config)
		},
		settings: []setting{{nil, "invalid argument"}, {[]fulmar.Encoding{used.deflate()}, "ok"}},
	}}
}

// addsWithDeflate returns the code of a call that is to be compressed.
func addsWithDeflate(t *testing.T, server fulmar.ServerConfig, client fulmar.ClientConfig) (code any) {
	synctest.Test(t, func(t *testing.T) {
		s := newStreaming(t, "grpc", &feed{}, server, client)
		_, err := testservice.NewCalculatorClient(s.client).Add(context.Background(), 1, 2, fulmar.Compression("deflate"))
		code = fulmar.CodeOf(err).String()
	})
	return code
}
