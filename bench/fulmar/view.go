package main

import (
	"context"
	"errors"
	"net"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/bench/gen/echo"
	views "github.com/fulmar-rpc/fulmar/bench/gen/viewmethods/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

//go:generate fulmar gen --view-methods both -o ../gen/viewmethods ../idl/echo.thrift

// inForm is a contestant of suite view, whose handlers register registers: those of a
// server, or those of a gateway if there is a client of what is behind it.
func inForm(name string, register func(*fulmar.Server, *fulmar.Client, rpc.Played)) rpc.Contestant {
	c := contestant(name, fulmar.Framed)
	c.Serve = func(ctx context.Context, listener net.Listener, p rpc.Played) (err error) {
		if !p.Hop {
			return serveForm(ctx, listener, func(server *fulmar.Server) { register(server, nil, p) })
		}
		behind, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		client, err := fulmar.NewClient(fulmar.ClientConfig{Target: behind.Addr().String(), Protocol: fulmar.Framed, ConnectTimeout: connectTimeout})
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() {
			ended <- serveForm(ctx, behind, func(server *fulmar.Server) { echo.RegisterEchoServer(server, handler{p}) })
		}()
		err = serveForm(ctx, listener, func(server *fulmar.Server) { register(server, client, p) })
		return errors.Join(err, client.Close(), <-ended)
	}
	return c
}

func serveForm(ctx context.Context, listener net.Listener, register func(*fulmar.Server)) error {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener})
	if err != nil {
		return err
	}
	register(server)
	return server.Serve(ctx)
}

func registerViews(server *fulmar.Server, behind *fulmar.Client, p rpc.Played) {
	if behind == nil {
		views.RegisterEchoServer(server, viewHandler{played: p})
		return
	}
	views.RegisterEchoServer(server, viewHandler{played: p, behind: views.NewEchoClient(behind)})
}

func registerStructs(server *fulmar.Server, behind *fulmar.Client, p rpc.Played) {
	if behind == nil {
		echo.RegisterEchoServer(server, handler{p})
		return
	}
	echo.RegisterEchoServer(server, structGateway{handler{p}, echo.NewEchoClient(behind)})
}

// viewHandler reads a field, sets it and answers, or passes on.
type viewHandler struct {
	played rpc.Played
	behind views.EchoClient
}

func (h viewHandler) Notify(_ context.Context, message views.MessageView) error {
	h.played.Notified(message.Action(), message.Msg())
	return nil
}

func (h viewHandler) Echo(_ context.Context, message views.MessageView) (views.MessageView, error) {
	message.SetAction(message.Action())
	return message, nil
}

func (h viewHandler) Complex(ctx context.Context, message views.ComplexView) (views.ComplexView, error) {
	message.SetAction(message.Action())
	if h.behind == nil {
		return message, nil
	}
	return h.behind.Complex(ctx, message)
}

// structGateway passes the method complex on.
type structGateway struct {
	handler
	behind echo.EchoClient
}

func (g structGateway) Complex(ctx context.Context, message *echo.Complex) (*echo.Complex, error) {
	// Reads the field and sets it to what it was, as viewHandler does: clients compare replies
	// with what they sent. A plain assignment to itself would be reported by vet.
	message.Action += ""
	return g.behind.Complex(ctx, message)
}
