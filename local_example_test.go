package fulmar_test

import (
	"context"
	"fmt"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// A client and a server of one process, without a socket.
func ExampleClientConfig_local() {
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	testservice.RegisterEchoServer(server, &greeter{})
	if _, err := server.Listen(); err != nil { // calls wait for Serve from now on
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error)
	go func() { served <- server.Serve(ctx) }()

	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := testservice.NewEchoClient(client).Echo(ctx, &testservice.Message{Text: "neighbour"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Text)
	fmt.Println(client.Close())
	stop()
	fmt.Println(<-served)
	// Output:
	// Hello, neighbour
	// <nil>
	// <nil>
}
