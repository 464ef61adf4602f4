package guide_test

import (
	"compress/zlib"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
)

// newSnugClient has an encoding of its own.
func newSnugClient(target string) (*fulmar.Client, error) {
	snug := fulmar.Encoding{
		Name:      "deflate", // as gRPC calls that of package zlib
		NewWriter: func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		NewReader: func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
	}
	return fulmar.NewClient(fulmar.ClientConfig{
		Target: target, Protocol: fulmar.GRPC,
		Encodings: []fulmar.Encoding{snug}, Compression: snug.Name,
	})
}

// TestEncoding_OfAUser: a server that does not know it says so, one that does answers.
func TestEncoding_OfAUser(t *testing.T) {
	ctx := context.Background()
	for want, list := range map[fulmar.Code][]fulmar.Encoding{
		fulmar.Unimplemented: nil,
		0: {{
			Name:      "deflate",
			NewWriter: func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
			NewReader: func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		}},
	} {
		server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Encodings: list})
		if err != nil {
			t.Fatal(err)
		}
		protoservice.RegisterPantryServer(server, &pantry{})
		serveIn(t, server, fulmar.GRPC)
		address, err := server.Listen()
		if err != nil {
			t.Fatal(err)
		}
		client, err := newSnugClient(address.String())
		if err != nil {
			t.Fatal(err)
		}
		sent := &protoservice.Jar{Name: strings.Repeat("plums ", 1000)}
		got, err := protoservice.NewPantryClient(client).Put(ctx, sent)
		if fulmar.CodeOf(err) != want || want == 0 && got.GetName() != sent.GetName() {
			t.Errorf("want %v, got %v", want, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
