package main

import (
	"context"
	"log"
	"os"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/hello/gen/greeter"
)

//go:generate fulmar gen -o gen greeter.thrift

type hello struct{}

func (hello) Greet(ctx context.Context, name string) (string, error) {
	return "Hello, " + name + "!", nil
}

func main() {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: os.Getenv("ADDRESS")})
	if err != nil {
		log.Fatal(err)
	}
	greeter.RegisterGreeterServer(server, hello{})
	log.Fatal(server.Serve(context.Background()))
}
