package main

import (
	"net"

	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/server"

	"github.com/fulmar-rpc/fulmar/test/kitex/gen/courier/courier"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/everything/everything"
	"github.com/fulmar-rpc/fulmar/test/kitex/rules"
)

// serve serves until stop is closed, and then stops as gracefully as Kitex does.
func (o *options) serve(listener net.Listener, transport string, stop <-chan struct{}) error {
	exit := make(chan error, 1)
	settings := []server.Option{
		server.WithListener(listener),
		server.WithExitSignal(func() <-chan error { return exit }),
		server.WithServerBasicInfo(&rpcinfo.EndpointBasicInfo{ServiceName: serverName}),
	}
	if o.handlers {
		settings = append(settings, server.WithMetaHandler(transmeta.ServerTTHeaderHandler))
	}
	if transport == "mux" || transport == "mux-bare" {
		settings = append(settings, server.WithMuxTransport())
	}
	peer := server.NewServer(settings...)
	if o.services != "courier" {
		if err := everything.RegisterService(peer, rules.New()); err != nil {
			return err
		}
	}
	if o.services != "everything" {
		if err := courier.RegisterService(peer, newMessenger(o, transport)); err != nil {
			return err
		}
	}
	go func() {
		<-stop
		exit <- nil
	}()
	return peer.Run()
}
