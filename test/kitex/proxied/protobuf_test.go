package proxied_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
)

// proxy serves nothing but forwards every call to the server at address.
func proxy(t *testing.T, address string, protocol fulmar.Protocol) string {
	t.Helper()
	client := dial(t, address, protocol)
	return serve(t, fulmar.ServerConfig{UnknownHandler: fulmar.Forward(client)})
}

func dial(t *testing.T, address string, protocol fulmar.Protocol) *fulmar.Client {
	t.Helper()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Protocol: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func serve(t *testing.T, config fulmar.ServerConfig) (address string) {
	t.Helper()
	return serveAny(t, config, func(*fulmar.Server) {})
}

// serveAny serves what register registers.
func serveAny(t *testing.T, config fulmar.ServerConfig, register func(*fulmar.Server)) (address string) {
	t.Helper()
	config.Address = "127.0.0.1:0"
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	register(server)
	bound, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return bound.String()
}

// wantProtobuf returns what the client is told, if its calls arrive at the proxy with a
// TTHeader, and at the server.
func wantProtobuf(in, out bool) []string {
	business, missing := `"Status":1001,"Message":"not today","Extra":{"left":"3"}`, `"Exception":1,"Text":"unknown method missing (service Pantry)"`
	circumstances := `"Reply":"trace 1, deadline true","Back":"3"`
	switch {
	case !out:
		// Kitex has no way to say the first, and loses it. Nothing names the service.
		business, missing = "", `"Exception":20,"Text":"unknown service , method missing"`
		circumstances = `"Reply":"trace , deadline false"`
	case !in:
		business, missing = `"Exception":6,"Text":"business error 1001: not today"`, `"Exception":20,"Text":"unknown service , method missing"`
		circumstances = `"Reply":"trace , deadline true"` // that of the proxy's client
	}
	const panics = `"Exception":6,"Text":"panic: [happened in biz handler, method=Pantry.panics, please check the panic at the server side] a secret"`
	var want []string
	for _, each := range [][2]string{
		{"echo", `"Reply":"hi"`}, {"echo", ""}, {"echo", `"Reply":"the long text"`}, {"fail", `"Exception":6,"Text":"biz error: no such jar"`},
		{"coded", `"Exception":77,"Text":"coded [biz error]"`}, {"business", business}, {"panics", panics}, {"missing", missing},
		{"circumstances", circumstances}, {"tell", ""}, {"told", `"Reply":"a secret"`}, {"echo", `"Reply":"at the end"`},
	} {
		line := `{"Case":"` + each[0] + `"`
		if each[1] != "" {
			line += "," + each[1]
		}
		want = append(want, line+"}")
	}
	return want
}

// TestProtobuf_ProxiesAreInvisible to a client of Kitex in front of a server of Kitex, as far
// as the protocols carry what is to be seen.
func TestProtobuf_ProxiesAreInvisible(t *testing.T) {
	back := startServer(t, "protobuf-server")
	for _, in := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeaderFramed} {
		headed := in == fulmar.TTHeaderFramed
		t.Run("without one, "+in.String(), func(t *testing.T) {
			compare(t, outcomes(t, "protobuf-client", back, in.String()), wantProtobuf(headed, headed))
		})
		for _, out := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed} {
			t.Run(in.String()+" to "+out.String(), func(t *testing.T) {
				compare(t, outcomes(t, "protobuf-client", proxy(t, back, out), in.String()), wantProtobuf(headed, out != fulmar.Framed))
			})
		}
	}
}

// TestProtobuf_ServersWithoutAHandler refuse calls of a client of Kitex so that it
// knows what it is told.
func TestProtobuf_ServersWithoutAHandler(t *testing.T) {
	for _, protocol := range []string{"framed", "ttheader-framed"} {
		for _, line := range outcomes(t, "protobuf-client", serve(t, fulmar.ServerConfig{}), protocol) {
			oneway := strings.Contains(line, `"tell"`)
			if refused := strings.Contains(line, `"Exception":1,"Text":"unknown method`); refused == oneway {
				t.Errorf("%s: %s", protocol, line)
			}
		}
	}
}

// TestProtobuf_RawCalls of a server of Kitex.
func TestProtobuf_RawCalls(t *testing.T) {
	back := startServer(t, "protobuf-server")
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed} {
		client := dial(t, back, protocol)
		call := func(name string, argument string) (string, error) {
			method, err := fulmar.RawProtobufMethod("Pantry", name, false)
			if err != nil {
				t.Fatal(err)
			}
			body, err := proto.Marshal(wrapperspb.String(argument))
			if err != nil {
				t.Fatal(err)
			}
			request, reply, result := fulmar.Raw(body), fulmar.Raw(nil), new(wrapperspb.StringValue)
			if err := client.Call(t.Context(), method, &request, &reply); err != nil {
				return "", err
			}
			err = proto.Unmarshal(reply, result)
			return result.GetValue(), err
		}
		for _, text := range []string{"", "hi", strings.Repeat("x", 1<<20)} {
			if got, err := call("echo", text); err != nil || got != text {
				t.Errorf("%v: %d of %d bytes came back, %v", protocol, len(got), len(text), err)
			}
		}
		_, err := call("fail", "")
		if fulmar.CodeOf(err) != fulmar.Internal || !strings.Contains(err.Error(), "biz error: no such jar") {
			t.Errorf("%v: %v", protocol, err)
		}
		if _, err = call("missing", ""); fulmar.CodeOf(err) != fulmar.Unimplemented {
			t.Errorf("%v: %v", protocol, err)
		}
	}
}
