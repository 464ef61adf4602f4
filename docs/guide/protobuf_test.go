package guide_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
)

type pantry struct{}

func (*pantry) Find(_ context.Context, request *protoservice.FindRequest) (*protoservice.Jar, error) {
	if request.GetName() != "plums" {
		return nil, fulmar.Errorf(fulmar.NotFound, "no jar %q", request.GetName())
	}
	return &protoservice.Jar{Name: "plums", Content: &protoservice.Jar_Text{Text: "from 2025"}}, nil
}

func (*pantry) Put(_ context.Context, jar *protoservice.Jar) (*protoservice.Jar, error) {
	return jar, nil
}

func (*pantry) Clear(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// TestProtobuf_Guide runs what docs/guide/protobuf.md quotes.
func TestProtobuf_Guide(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	protoservice.RegisterPantryServer(server, &pantry{})
	if _, err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := findPlums(ctx, client); err != nil || text != "from 2025" {
		t.Errorf("%q, %v", text, err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func findPlums(ctx context.Context, client *fulmar.Client) (string, error) {
	api := protoservice.NewPantryClient(client)
	jar, err := api.Find(ctx, &protoservice.FindRequest{Name: "plums"})
	if err != nil {
		return "", fmt.Errorf("looking for plums: %w", err)
	}
	return jar.GetText(), nil
}
