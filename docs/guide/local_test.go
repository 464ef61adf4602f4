package guide_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/fulmartest"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// shop is the service of these examples.
type shop struct{ testservice.Stub }

func (*shop) Add(_ context.Context, left, right int32) (int32, error) { return left + right, nil }

func TestLocal_OneProcess(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &shop{})
	if _, err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()

	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := testservice.NewEchoClient(client).Add(ctx, 1, 2)
	if sum != 3 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestTesting_ServerThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetwork(t)
		server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &shop{}) })
		api := testservice.NewEchoClient(network.Client(t, server))

		network.Cut(server, time.Second)
		if _, err := api.Add(t.Context(), 1, 2); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("while the server is away: %v", err)
		}
		time.Sleep(time.Second) // takes no time in a bubble
		if _, err := api.Add(t.Context(), 1, 2); err != nil {
			t.Errorf("when it is back: %v", err)
		}
	})
}

func TestTesting_ServersOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := fulmartest.NewNetworkWith(t, fulmartest.Config{
			Delay:        10 * time.Millisecond,
			DelayJitter:  5 * time.Millisecond,
			SplitPercent: 10,
			Client:       fulmar.ClientConfig{Timeout: time.Second},
		})
		register := func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &shop{}) }
		first, second := network.Server(t, register), network.Server(t, register)
		api := testservice.NewEchoClient(network.Client(t, first, second))

		first.Kill()
		for range 10 {
			if _, err := api.Add(t.Context(), 1, 2); err != nil {
				t.Errorf("with one of two: %v", err)
			}
		}
		first.Start()
	})
}

func TestTesting_CallsThatFail(t *testing.T) {
	network := fulmartest.NewNetwork(t)
	server := network.Server(t, func(s *fulmar.Server) { testservice.RegisterEchoServer(s, &shop{}) })
	api := testservice.NewEchoClient(network.Client(t, server))

	busy := server.Inject(fulmartest.Rule{
		Method: testservice.EchoAddFullMethodName,
		Calls:  2,
		Err:    fulmar.NewError(fulmar.ResourceExhausted, "busy"),
	})
	for range 3 {
		_, err := api.Add(t.Context(), 1, 2)
		t.Log(err)
	}
	if busy.Hits() != 2 {
		t.Errorf("%d calls failed", busy.Hits())
	}
}
