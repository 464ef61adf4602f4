//go:build linux

// Command apachethrift runs the Go library of Apache Thrift with framed Binary:
// a goroutine and a connection for each caller, which is all that it has.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/fulmar-rpc/fulmar/bench/peers/gen/apache/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	rpc.Main(rpc.Contestant{
		Name: "apache-thrift", Modules: []string{"github.com/apache/thrift"}, Serve: serve,
		Connect: func(address string, p rpc.Played) (rpc.Client, error) {
			return &client{address: address, secure: p.ClientTLS}, nil
		},
	})
}

// framed buffers what it frames, so the socket needs no buffers of its own. The
// configuration is passed on to the transport below.
func framed(config *thrift.TConfiguration) thrift.TTransportFactory {
	return thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), config)
}

func serve(ctx context.Context, listener net.Listener, p rpc.Played) error {
	if p.ServerTLS != nil {
		listener = tls.NewListener(listener, p.ServerTLS)
	}
	socket := thrift.NewTServerSocketFromFactoryTimeout(func(net.Addr) (net.Listener, error) { return listener, nil }, listener.Addr(), 0)
	server := thrift.NewTSimpleServer4(echo.NewEchoProcessor(handler{p}), socket, framed(&thrift.TConfiguration{}), thrift.NewTBinaryProtocolFactoryConf(nil))
	stop := context.AfterFunc(ctx, func() { _ = server.Stop() })
	defer stop()
	return server.Serve()
}

type handler struct{ played rpc.Played }

func (h handler) Notify(_ context.Context, message *echo.Message) error {
	h.played.Notified(message.Action, message.Msg)
	return nil
}

func (handler) Echo(_ context.Context, message *echo.Message) (*echo.Message, error) {
	return &echo.Message{Action: message.Action, Msg: message.Msg}, nil
}

func (handler) Complex(_ context.Context, message *echo.Complex) (*echo.Complex, error) {
	return &echo.Complex{
		Action: message.Action, Msg: message.Msg, ByName: message.ByName,
		Parts: message.Parts, Groups: message.Groups, Flag: message.Flag,
	}, nil
}

// client opens a connection for each caller.
type client struct {
	address    string
	secure     *tls.Config // nil without TLS
	transports []thrift.TTransport
}

func (c *client) Caller() (rpc.Caller, error) {
	config := &thrift.TConfiguration{TLSConfig: c.secure}
	var socket thrift.TTransport = thrift.NewTSocketConf(c.address, config)
	if c.secure != nil {
		socket = thrift.NewTSSLSocketConf(c.address, config)
	}
	transport, err := framed(config).GetTransport(socket)
	if err != nil {
		return nil, err
	}
	if err := transport.Open(); err != nil {
		return nil, err
	}
	c.transports = append(c.transports, transport)
	return caller{echo.NewEchoClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(nil))}, nil
}

func (c *client) Close() error {
	var failures []error
	for _, transport := range c.transports {
		failures = append(failures, transport.Close())
	}
	return errors.Join(failures...)
}

type caller struct{ api *echo.EchoClient }

func (c caller) Echo(ctx context.Context, action, msg string) (string, string, error) {
	reply, err := c.api.Echo(ctx, &echo.Message{Action: action, Msg: msg})
	if err != nil {
		return "", "", err
	}
	return reply.Action, reply.Msg, nil
}

func (c caller) Notify(ctx context.Context, action, msg string) error {
	return c.api.Notify(ctx, &echo.Message{Action: action, Msg: msg})
}

func (c caller) Complex(data *rpc.Complex) func(context.Context) (bool, error) {
	request := newComplex(data)
	return func(ctx context.Context) (bool, error) {
		reply, err := c.api.Complex(ctx, request)
		return err == nil && equal(reply, data), err
	}
}
