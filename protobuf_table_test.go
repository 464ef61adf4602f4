package fulmar_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestProtobuf_NameThatThriftHasToo: one service has a method in Thrift, another one of
// the same name in Protobuf. Which is meant shows in how the call is encoded, also where
// no service is named. A third service makes the one in Protobuf ambiguous, and not the
// other.
func TestProtobuf_NameThatThriftHasToo(t *testing.T) {
	service := func(name string) *fulmar.ServiceDesc {
		method := protobufMethod(t, "version", false)
		method.Invoke = func(_ context.Context, _, request any) (any, error) {
			reply := fulmar.Raw(name + string(*request.(*fulmar.Raw)))
			return &reply, nil
		}
		return &fulmar.ServiceDesc{Name: name, Methods: []*fulmar.MethodDesc{method}}
	}
	stub := &testservice.Stub{OnVersion: func(context.Context) (string, error) { return "in Thrift", nil }}
	for protobufFirst, names := range map[bool][]string{false: {"Pantry"}, true: {"Pantry", "Cellar"}} {
		server := serveAny(t, fulmar.ServerConfig{}, func(registrar fulmar.Registrar) {
			if !protobufFirst {
				testservice.RegisterEchoServer(registrar, stub)
			}
			for _, name := range names {
				registrar.RegisterService(service(name), struct{}{})
			}
			if protobufFirst {
				testservice.RegisterEchoServer(registrar, stub)
			}
		})
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.Framed})
		if version, err := testservice.NewEchoClient(client).Version(t.Context()); version != "in Thrift" || err != nil {
			t.Errorf("%v, in Thrift: %q, %v", names, version, err)
		}
		request, reply := fulmar.Raw(hi), fulmar.Raw(nil)
		err := client.Call(t.Context(), protobufMethod(t, "version", false), &request, &reply)
		switch {
		case len(names) == 1 && (err != nil || string(reply) != "Pantry"+string(hi)):
			t.Errorf("%v, in Protobuf: %q, %v", names, reply, err)
		case len(names) > 1 && (err == nil || !strings.Contains(asError(t, err).Message(), "is in several services (Pantry, Cellar)")):
			t.Errorf("%v, in Protobuf: %q, %v; want it ambiguous", names, reply, err)
		}
		if warned := strings.Contains(server.log.String(), "methods are in several services"); warned != (len(names) > 1) {
			t.Errorf("%v: the log says %q", names, server.log)
		}
	}
}

// TestProtobuf_StreamsAreNotAmbiguous: only gRPC carries them, which names services.
func TestProtobuf_StreamsAreNotAmbiguous(t *testing.T) {
	server := serveAny(t, fulmar.ServerConfig{}, func(registrar fulmar.Registrar) {
		for _, name := range []string{"Pantry", "Cellar"} {
			watch := protobufMethod(t, "watch", false)
			watch.ServerStreams = true
			registrar.RegisterService(&fulmar.ServiceDesc{Name: name, Methods: []*fulmar.MethodDesc{watch}}, struct{}{})
		}
	})
	if strings.Contains(server.log.String(), "methods are in several services") {
		t.Errorf("the log says %q", server.log)
	}
}
