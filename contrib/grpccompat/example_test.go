package grpccompat_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// A service and a stub of grpc-go, its health service, on a server and a client of Fulmar.
func Example() {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	healthpb.RegisterHealthServer(grpccompat.NewRegistrar(server, grpccompat.ServerConfig{}), health.NewServer())
	address, err := server.Listen()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()

	client, err := grpccompat.NewClient(grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: address.String()}})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := healthpb.NewHealthClient(client).Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)

	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	stop()
	fmt.Println(<-served)
	// Output:
	// SERVING <nil>
	// <nil>
}
