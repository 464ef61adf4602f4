package fulmar_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// greeter implements the generated interface testservice.EchoServer.
type greeter struct{ testservice.Stub }

func (*greeter) Echo(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
	if message.Text == "" {
		return nil, &testservice.Refused{Reason: "nobody to greet"}
	}
	return &testservice.Message{Text: "Hello, " + message.Text}, nil
}

// A service, a client, a call, and a declared exception.
func Example() {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	testservice.RegisterEchoServer(server, &greeter{})
	address, err := server.Listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error)
	go func() { served <- server.Serve(ctx) }()

	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		fmt.Println(err)
		return
	}
	api := testservice.NewEchoClient(client)
	reply, err := api.Echo(ctx, &testservice.Message{Text: "Ada"}, fulmar.Timeout(time.Second))
	if err == nil {
		fmt.Println(reply.Text)
	}
	_, err = api.Echo(ctx, &testservice.Message{})
	var refused *testservice.Refused
	if errors.As(err, &refused) {
		fmt.Println("refused:", refused.Reason)
	}

	_ = client.Close()
	stop() // drains: running calls finish
	fmt.Println("served:", <-served)
	// Output:
	// Hello, Ada
	// refused: nobody to greet
	// served: <nil>
}
