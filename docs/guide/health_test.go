package guide_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/health"
	"github.com/fulmar-rpc/fulmar/reflection"
)

// TestHealth_Guide runs what docs/guide/grpc.md quotes.
func TestHealth_Guide(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	reflection.Register(server)
	known := health.Register(server)
	known.Set("shop.v1.Orders", health.Serving)
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
