package main

import (
	"context"
	"errors"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/gen/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// local returns a client of a server in this process, which ends with the client. All
// of it is as users have it by default.
func local(p rpc.Played) (rpc.Client, error) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		return nil, err
	}
	echo.RegisterEchoServer(server, handler{p})
	// From here on calls wait for Serve instead of being refused.
	if _, err := server.Listen(); err != nil {
		return nil, err
	}
	inner, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	return localClient{client{inner}, func() error { cancel(); return <-served }}, nil
}

// localClient ends its server too.
type localClient struct {
	client
	stop func() error
}

func (c localClient) Close() error { return errors.Join(c.client.Close(), c.stop()) }
