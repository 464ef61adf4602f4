package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/server"

	service "github.com/fulmar-rpc/fulmar/test/kitex/gen/orders/orders"
)

// exitWait is how long the server waits for connections when it stops; by
// default Kitex takes 5 seconds, whether there are calls or not.
const exitWait = 50 * time.Millisecond

// serve serves until the standard input ends.
func serve(shop *shop, transport string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	exit := make(chan error, 1)
	settings := []server.Option{
		server.WithListener(listener),
		server.WithExitSignal(func() <-chan error { return exit }),
		server.WithExitWaitTime(exitWait),
		server.WithServerBasicInfo(&rpcinfo.EndpointBasicInfo{ServiceName: serverName}),
		// Without it there are no business errors.
		server.WithMetaHandler(transmeta.ServerTTHeaderHandler),
	}
	if transport == multiplexed {
		settings = append(settings, server.WithMuxTransport())
	}
	if _, err := fmt.Println(listener.Addr()); err != nil {
		return err
	}
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		exit <- err
	}()
	return service.NewServer(shop, settings...).Run()
}
