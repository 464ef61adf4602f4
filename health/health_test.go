package health_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/health"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// start returns a server that answers probes, and a client of it in one process.
func start(t *testing.T) (*health.Health, *fulmar.Client) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return health.Register(server), serve(t, server)
}

// serve serves until the test ends, and returns a client in the same process.
func serve(t *testing.T, server *fulmar.Server) *fulmar.Client {
	t.Helper()
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
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return client
}

// asked is the request for a service, as bytes.
func asked(service string) *fulmar.Raw {
	if service == "" {
		return &fulmar.Raw{}
	}
	raw := fulmar.Raw(append([]byte{0x0a, byte(len(service))}, service...))
	return &raw
}

func TestHealth_Check(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, client := start(t)
		method, err := fulmar.RawProtobufMethod(health.ServiceName, "Check", false)
		if err != nil {
			t.Fatal(err)
		}
		check := func(service string) (health.Status, error) {
			var answer fulmar.Raw
			if err := client.Call(t.Context(), method, asked(service), &answer); err != nil {
				return 0, err
			}
			if len(answer) != 2 || answer[0] != 0x08 {
				t.Fatalf("% x", answer)
			}
			return health.Status(answer[1]), nil
		}
		if status, err := check(""); err != nil || status != health.Serving {
			t.Errorf("the server: %v, %v", status, err)
		}
		if _, err := check("shop"); fulmar.CodeOf(err) != fulmar.NotFound {
			t.Errorf("a service of which nothing is known: %v", err)
		}
		known.Set("shop", health.NotServing)
		if status, err := check("shop"); err != nil || status != health.NotServing {
			t.Errorf("a service: %v, %v", status, err)
		}
		known.Stop()
		known.Set("", health.Serving)
		if status, err := check(""); err != nil || status != health.NotServing {
			t.Errorf("behind Stop: %v, %v", status, err)
		}
		for _, wrong := range []fulmar.Raw{{0x0a, 5, 'x'}, {0x0a, 1, 0xff}, {0x80}} {
			if err := client.Call(t.Context(), method, &wrong, &fulmar.Raw{}); err == nil {
				t.Errorf("% x is taken for a request", wrong)
			}
		}
	})
}

func TestHealth_List(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, client := start(t)
		method, err := fulmar.RawProtobufMethod(health.ServiceName, "List", false)
		if err != nil {
			t.Fatal(err)
		}
		list := func(asked fulmar.Raw) (answer fulmar.Raw, err error) {
			err = client.Call(t.Context(), method, &asked, &answer)
			return answer, err
		}
		known.Set("shop", health.NotServing)
		known.Set("bank", health.Unknown)
		want := "\x0a\x06\x0a\x00\x12\x02\x08\x01" + "\x0a\x08\x0a\x04bank\x12\x00" + "\x0a\x0a\x0a\x04shop\x12\x02\x08\x02"
		for _, asked := range []fulmar.Raw{{}, {0x08, 7}} {
			if answer, err := list(asked); err != nil || string(answer) != want {
				t.Errorf("% x, %v, want % x", answer, err, want)
			}
		}
		if answer, err := list(fulmar.Raw{0x80}); err == nil {
			t.Errorf("what is no message is answered with % x", answer)
		}
		for i := range limits.HealthListServices - 3 {
			known.Set(fmt.Sprint(i), health.Serving)
		}
		if _, err := list(nil); err != nil {
			t.Errorf("as many services as may be: %v", err)
		}
		known.Set("one more", health.Serving)
		if _, err := list(nil); fulmar.CodeOf(err) != fulmar.ResourceExhausted {
			t.Errorf("too many services: %v", err)
		}
	})
}

func TestHealth_Watch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, client := start(t)
		stream := watch(t, client, "shop")
		next := func() health.Status {
			answer, err := stream.Recv()
			if err != nil || len(*answer) != 2 {
				t.Fatalf("%v, %v", answer, err)
			}
			return health.Status((*answer)[1])
		}
		if status := next(); status != health.ServiceUnknown {
			t.Errorf("at first %v", status)
		}
		synctest.Wait()
		known.Set("other", health.Serving)
		known.Set("shop", health.Serving)
		if status := next(); status != health.Serving {
			t.Errorf("then %v", status)
		}
		synctest.Wait()
		known.Stop()
		if status := next(); status != health.NotServing {
			t.Errorf("in the end %v", status)
		}
		if _, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("behind Stop a watch ends with %v", err)
		}
		if answer, err := watch(t, client, "shop").Recv(); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("a watch that begins behind Stop: %v, %v", answer, err)
		}
	})
}

// TestHealth_IsNotMeantWithoutItsName: a client of Kitex's sends the name of a service
// without its package, and finds a List or Check of that name.
func TestHealth_IsNotMeantWithoutItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		health.Register(server)
		desc := &fulmar.ServiceDesc{Name: "shop.v1.Shop"}
		for _, name := range []string{"List", "Check"} {
			method, err := fulmar.RawProtobufMethod(desc.Name, name, false)
			if err != nil {
				t.Fatal(err)
			}
			desc.Methods = append(desc.Methods, &fulmar.MethodDesc{
				Service: desc.Name, Name: name, Codec: method.Codec, NewRequest: func() any { return new(fulmar.Raw) },
				Invoke: func(context.Context, any, any) (any, error) { return &fulmar.Raw{0x08, 7}, nil },
			})
		}
		server.RegisterService(desc, struct{}{})
		client := serve(t, server)
		for _, named := range desc.Methods {
			method, err := fulmar.RawProtobufMethod("Shop", named.Name, false)
			if err != nil {
				t.Fatal(err)
			}
			var answer fulmar.Raw
			if err := client.Call(t.Context(), method, &fulmar.Raw{}, &answer); err != nil || string(answer) != "\x08\x07" {
				t.Errorf("%s: % x, %v", named.Name, answer, err)
			}
		}
		if log.Len() > 0 {
			t.Errorf("it was logged that\n%s", log.String())
		}
	})
}

// TestHealth_WatchersDoNotHoldUpAStop, whether Stop is called or not.
func TestHealth_WatchersDoNotHoldUpAStop(t *testing.T) {
	for name, want := range map[string][]health.Status{"with Stop": {health.Serving, health.NotServing}, "without": {health.Serving}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := simnet.New(simnet.Config{})
				listener, err := network.Listen("server:1")
				if err != nil {
					t.Fatal(err)
				}
				var known *health.Health
				server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener, BeforeStop: func(context.Context) error {
					if name == "with Stop" {
						known.Stop()
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				known = health.Register(server)
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- server.Serve(ctx) }()
				client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "server:1", Dial: network.Dial, Protocol: fulmar.GRPC})
				if err != nil {
					t.Fatal(err)
				}
				stream := watch(t, client, "")
				synctest.Wait()
				start := time.Now()
				stop()
				var told []health.Status
				for {
					answer, err := stream.Recv()
					if err != nil {
						if code := fulmar.CodeOf(err); code != fulmar.Unavailable && code != fulmar.Canceled {
							t.Errorf("it ends with %v", err)
						}
						break
					}
					told = append(told, health.Status((*answer)[1]))
				}
				if err := <-served; err != nil || time.Since(start) > time.Second || !slices.Equal(told, want) {
					t.Errorf("Serve returned %v after %v, and %v was told", err, time.Since(start), told)
				}
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// watch begins to watch a service.
func watch(t *testing.T, client *fulmar.Client, service string) fulmar.ServerStreamingClient[fulmar.Raw] {
	t.Helper()
	raw, err := fulmar.RawProtobufMethod(health.ServiceName, "Watch", false)
	if err != nil {
		t.Fatal(err)
	}
	method := &fulmar.MethodDesc{Service: raw.Service, Name: raw.Name, Codec: raw.Codec, ServerStreams: true}
	stream, err := fulmar.OpenServerStream[fulmar.Raw, fulmar.Raw](t.Context(), client, method, asked(service))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestStatus_Names(t *testing.T) {
	for status, want := range map[health.Status]string{health.Unknown: "unknown", health.ServiceUnknown: "service unknown", -1: "no status", 9: "no status"} {
		if got := status.String(); got != want {
			t.Errorf("%d is %q, want %q", status, got, want)
		}
	}
}
