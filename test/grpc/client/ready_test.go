package client_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// TestClient_WaitsForReady begins a call and a stream when there is no server; grpc-go
// begins to serve once a connection was refused.
func TestClient_WaitsForReady(t *testing.T) {
	echo := &fulmar.MethodDesc{Service: "fulmar.test.v1.Pantry", Name: "Missing", Codec: protobuf.Binary, ClientStreams: true, ServerStreams: true}
	for name, call := range map[string]func(client *fulmar.Client) fulmar.Code{
		"unary": func(client *fulmar.Client) fulmar.Code {
			method := &fulmar.MethodDesc{Service: echo.Service, Name: "Missing", Codec: protobuf.Binary}
			return fulmar.CodeOf(client.Call(t.Context(), method, new(wrapperspb.StringValue), new(wrapperspb.StringValue), fulmar.WaitForReady(true), fulmar.Timeout(-1)))
		},
		"stream": func(client *fulmar.Client) fulmar.Code {
			stream, err := fulmar.OpenBidiStream[wrapperspb.StringValue, wrapperspb.StringValue](t.Context(), client, echo, fulmar.WaitForReady(true))
			if err == nil {
				_, err = stream.Recv()
			}
			return fulmar.CodeOf(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := free.Addr().String()
			_ = free.Close()
			server, served := grpc.NewServer(), make(chan error, 1)
			server.RegisterService(desc(), &pantry{})
			var begin sync.Once
			client, _ := dial(t, fulmar.ClientConfig{Target: address, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err != nil {
					begin.Do(func() {
						listener, err := net.Listen("tcp", address)
						if err != nil {
							t.Error(err)
							return
						}
						go func() { served <- server.Serve(listener) }()
					})
				}
				return conn, err
			}})
			// What the server says: it was reached.
			if code := call(client); code != fulmar.Unimplemented {
				t.Errorf("%v, want %v", code, fulmar.Unimplemented)
			}
			server.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
