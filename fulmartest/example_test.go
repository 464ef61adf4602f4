package fulmartest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/fulmartest"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// inTest runs an example as the body of a test, whose t it would be given there.
func inTest(body func(t testing.TB)) { new(fakeT).do(body) }

type greeter struct{ testservice.Stub }

func (*greeter) Echo(_ context.Context, message *testservice.Message) (*testservice.Message, error) {
	return &testservice.Message{Text: "Hello, " + message.Text}, nil
}

// A server, a client, a call.
func ExampleNetwork() {
	inTest(func(t testing.TB) {
		network := fulmartest.NewNetwork(t)
		server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &greeter{}) })
		api := testservice.NewEchoClient(network.Client(t, server))

		reply, err := api.Echo(context.Background(), &testservice.Message{Text: "fulmar"})
		if err != nil {
			t.Fatalf("%v", err)
		}
		fmt.Println(reply.Text)
	})
	// Output: Hello, fulmar
}

// A server whose connections are refused for a while.
func ExampleNetwork_Cut() {
	inTest(func(t testing.TB) {
		network := fulmartest.NewNetwork(t)
		server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &greeter{}) })
		api := testservice.NewEchoClient(network.Client(t, server))

		network.Cut(server, time.Minute)
		_, err := api.Echo(context.Background(), &testservice.Message{})
		var failed *fulmar.Error
		if errors.As(err, &failed) {
			fmt.Println(failed.Code(), "-", failed.Executed())
		}

		network.Heal(server)
		_, err = api.Echo(context.Background(), &testservice.Message{})
		fmt.Println(err)
	})
	// Output:
	// unavailable - not executed
	// <nil>
}

// A method that fails for one call.
func ExampleServer_Inject() {
	inTest(func(t testing.TB) {
		network := fulmartest.NewNetwork(t)
		server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &greeter{}) })
		api := testservice.NewEchoClient(network.Client(t, server))

		server.Inject(fulmartest.Rule{
			Method: testservice.EchoEchoFullMethodName,
			Calls:  1,
			Err:    fulmar.NewError(fulmar.ResourceExhausted, "busy"),
		})
		for range 2 {
			_, err := api.Echo(context.Background(), &testservice.Message{})
			fmt.Println(err == nil, fulmar.CodeOf(err) == fulmar.ResourceExhausted)
		}
	})
	// Output:
	// false true
	// true false
}
