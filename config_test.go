package fulmar_test

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

func TestServerConfig_ReportsAllProblemsAtOnce(t *testing.T) {
	_, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:         "nowhere",
		Protocols:       []fulmar.Protocol{fulmar.Framed, 99},
		MaxMessageBytes: limits.FrameLengthMax + 1,
		MaxSendBytes:    limits.FrameLengthMax + 2,
		MaxDepth:        10_001,
		Interceptors:    []fulmar.UnaryInterceptor{nil},
	})
	if err == nil {
		t.Fatal("NewServer succeeded")
	}
	for _, want := range []string{`"nowhere" is not host:port`, "Protocols[1]: 99", "MaxMessageBytes", "MaxSendBytes", "MaxDepth: 10001", "Interceptors[0] is nil"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestClientConfig_ReportsAllProblemsAtOnce(t *testing.T) {
	_, err := fulmar.NewClient(fulmar.ClientConfig{
		Protocol:     77,
		MaxDepth:     1 << 20,
		Interceptors: []fulmar.UnaryInterceptor{nil},
	})
	if err == nil {
		t.Fatal("NewClient succeeded")
	}
	for _, want := range []string{"Target is empty", "Protocol: 77", "MaxDepth: 1048576", "Interceptors[0] is nil"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

// TestConfig_RefusesDurationsWithoutUnit: every duration of both configurations
// that is set to a few nanoseconds is named.
func TestConfig_RefusesDurationsWithoutUnit(t *testing.T) {
	duration := reflect.TypeFor[time.Duration]()
	checked := 0
	for _, config := range []interface{ Validate() error }{&fulmar.ServerConfig{}, &fulmar.ClientConfig{Target: "127.0.0.1:1"}} {
		value := reflect.ValueOf(config).Elem()
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if field.Type != duration {
				continue
			}
			value.Field(i).SetInt(5)
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), field.Name+": ") || !strings.Contains(err.Error(), "5ns") {
				t.Errorf("%T.%s = 5ns: %v", config, field.Name, err)
			}
			for _, good := range []time.Duration{0, -1, limits.ConfigDurationMin, time.Hour} {
				value.Field(i).SetInt(int64(good))
				if field.Name == "WriteStallTimeout" && good == limits.ConfigDurationMin {
					continue // Has a larger limit of its own.
				}
				if err := config.Validate(); err != nil {
					t.Errorf("%T.%s = %v: %v", config, field.Name, good, err)
				}
			}
			value.Field(i).SetInt(0)
			checked++
		}
	}
	if checked != 16 {
		t.Errorf("checked %d durations, want 16", checked)
	}
}

func TestTarget_Forms(t *testing.T) {
	good := []string{"127.0.0.1:80", "localhost:1", "[::1]:8888", ":1", "unix:///run/orders.socket", "unix:///run/orders:0", "unix:@name",
		"dns:///orders.example:80", "dns:///_orders._tcp.example", "file:///orders", "file:///run/fulmar/orders", "static:///a:1", "static:///a:1,b:1,[::1]:1,:1", "static:///" + addresses(limits.TargetInstances)}
	for _, target := range good {
		if err := (fulmar.ClientConfig{Target: target}).Validate(); err != nil {
			t.Errorf("%q: %v", target, err)
		}
	}
	bad := map[string]string{
		"localhost":               "not host:port",
		"localhost:http":          `port "http" is not a number`,
		"localhost:0":             "port 0",
		"localhost:65536":         "from 0 to 65535",
		"localhost:-1":            "from 0 to 65535",
		"consul:///orders":        `scheme "consul" is not known`,
		"dns:///orders":           "neither host:port nor _service._proto.domain",
		"dns:///orders:0":         "from 1 to 65535",
		"dns:///_orders.example":  "is not _service._proto.domain",
		"dns:///_orders._tcp.":    "is not _service._proto.domain",
		"dns://8.8.8.8/orders:80": "is not dns:///host:port",
		"dns:///" + strings.Repeat("x", 300) + ":80": "a name of 300 bytes (limit 255)",
		"dns:///a b:80":                        `" " cannot be in a name`,
		"file://orders":                        "is not file:///service",
		"file:///":                             "is not file:///service",
		"file:///run/":                         "the name of the service is empty",
		"file:///" + strings.Repeat("x", 300):  "a name of 300 bytes (limit 200)",
		"file:///" + strings.Repeat("x", 2000): "a name of 2000 bytes (limit 1024)",
		"static://a:1":                         "is not static:///host:port",
		"static://host/a:1":                    "is not static:///host:port",
		"static:///":                           "is not static:///host:port",
		"static:///a:1,b":                      `address 2: "b" is not host:port`,
		"static:///a:1,b:1,":                   "address 3: empty",
		"static:///,a:1":                       "address 1: empty",
		"static:///a:1, b:1":                   `address 2: " b:1" has a space in it`,
		"static:///a:1,b:0":                    `address 2: "b:0" has port 0`,
		"static:///a:1,unix:///run/b":          `address 2: "unix:///run/b": sockets with a path`,
		"static:///a:1,dns:///b:1":             `address 2: "dns:///b:1": scheme "dns"`,
		"static:///a:1,b:1,a:1":                `address 3: "a:1" is the same as address 1`,
		"static:///" + addresses(limits.TargetInstances+1): "a list of 257 addresses (limit 256)",
		"unix:relative":                       "unix:///absolute/path",
		"unix://host/path":                    "unix:///absolute/path",
		"unix:@":                              "2 to 107 bytes",
		"unix:///" + strings.Repeat("x", 107): "2 to 107 bytes (got 108)",
	}
	for target, want := range bad {
		err := (fulmar.ClientConfig{Target: target}).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", target, err, want)
		}
	}
}

// addresses returns a list of n different ones.
func addresses(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("server%d:1", i))
	}
	return strings.Join(list, ",")
}

func TestTarget_AllProblemsOfAListAtOnce(t *testing.T) {
	err := (fulmar.ClientConfig{Target: "static:///a,b:1,c:x,,b:1"}).Validate()
	if err == nil {
		t.Fatal("the list is accepted")
	}
	for _, want := range []string{"address 1: ", "address 3: ", "address 4: ", "address 5: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "address 2: ") {
		t.Errorf("the good address is refused:\n%v", err)
	}
}

// TestServerConfig_RefusesLists: a server listens at one address.
func TestServerConfig_RefusesLists(t *testing.T) {
	if err := (fulmar.ServerConfig{Address: "static:///a:1,b:1"}).Validate(); err == nil || !strings.Contains(err.Error(), `scheme "static" is not known`) {
		t.Error(err)
	}
}

// FuzzTarget: a list is accepted if each of its addresses is accepted alone, is
// "host:port", and stands in it once; what is accepted makes a client.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{
		"a:1", "unix:///run/a", "unix:@a", "static:///a:1", "static:///a:1,b:2,[::1]:3", "static:///a:1,a:1",
		"static:///a:1,,b:2", "static:///unix:@a,b:0", "static:///a:1,static:///b:1", "static://a/b:1", "dns:///a:1",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		err := (fulmar.ClientConfig{Target: target}).Validate()
		if strings.HasPrefix(target, "dns:") || strings.HasPrefix(target, "file:") {
			return // What is accepted is looked up.
		}
		if client, failed := fulmar.NewClient(fulmar.ClientConfig{Target: target}); (failed == nil) != (err == nil) {
			t.Fatalf("Validate says %v, NewClient %v", err, failed)
		} else if failed == nil {
			_ = client.Close()
		}
		list, ok := strings.CutPrefix(target, "static:///")
		if !ok {
			return
		}
		good, seen := true, map[string]bool{}
		elements := strings.Split(list, ",")
		for _, element := range elements {
			alone := (fulmar.ClientConfig{Target: element}).Validate() == nil && !strings.HasPrefix(element, "unix:") && !strings.Contains(element, "://") && !strings.ContainsAny(element, " \t\r\n")
			host, port, _ := net.SplitHostPort(element)
			good = good && alone && !seen[net.JoinHostPort(host, port)]
			seen[net.JoinHostPort(host, port)] = true
		}
		if good = good && len(elements) <= limits.TargetInstances; good != (err == nil) {
			t.Fatalf("Validate: %v", err)
		}
	})
}

func TestProtocol_Text(t *testing.T) {
	for _, want := range []fulmar.Protocol{0, fulmar.Bare, fulmar.Framed} {
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got := fulmar.Protocol(99)
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Errorf("%v became %q and then %v, %v", want, text, got, err)
		}
	}
	var p fulmar.Protocol
	if err := p.UnmarshalText([]byte("carrier pigeon")); err == nil || !strings.Contains(err.Error(), "bare, framed") {
		t.Errorf("an unknown protocol: %v", err)
	}
}

func TestServer_UnixSockets(t *testing.T) {
	for _, address := range []string{"unix://" + t.TempDir() + "/socket", "unix:@fulmar-test-" + strings.ReplaceAll(t.TempDir(), "/", "-")} {
		server := serve(t, fulmar.ServerConfig{Address: address}, adder())
		api := dial(t, fulmar.ClientConfig{Target: address})
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("%s: Add = %d, %v", address, sum, err)
		}
		if err := server.stop(); err != nil {
			t.Errorf("%s: Serve: %v", address, err)
		}
	}
}

func TestServer_ListenErrorsComeFromServe(t *testing.T) {
	first := serve(t, fulmar.ServerConfig{}, adder())
	second, err := fulmar.NewServer(fulmar.ServerConfig{Address: first.address})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Serve(context.Background()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Serve on a port that is taken: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Errorf("Close of a server that never listened: %v", err)
	}
	// A call shows that the first Serve has begun.
	if _, err := dial(t, fulmar.ClientConfig{Target: first.address}).Add(context.Background(), 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := first.server.Serve(context.Background()); err == nil {
		t.Error("a second Serve succeeded")
	}
}

// mustPanic returns what f panics with.
func mustPanic(t *testing.T, f func()) (message string) {
	t.Helper()
	defer func() {
		text, ok := recover().(string)
		if !ok {
			t.Error("no panic with a text")
		}
		message = text
	}()
	f()
	return ""
}

func TestServer_RegistrationMistakesPanic(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, adder())
	if text := mustPanic(t, func() { testservice.RegisterEchoServer(server, adder()) }); !strings.Contains(text, "service Echo is registered twice") {
		t.Errorf("twice: %q", text)
	}
	if text := mustPanic(t, func() { testservice.RegisterCalculatorServer(server, nil) }); !strings.Contains(text, "Calculator is nil") {
		t.Errorf("nil: %q", text)
	}
	var none *testservice.Stub
	if text := mustPanic(t, func() { testservice.RegisterCalculatorServer(server, none) }); !strings.Contains(text, "Calculator is nil") {
		t.Errorf("typed nil: %q", text)
	}
	serving := serve(t, fulmar.ServerConfig{}, adder())
	if _, err := dial(t, fulmar.ClientConfig{Target: serving.address}).Add(context.Background(), 1, 2); err != nil {
		t.Fatal(err)
	}
	if text := mustPanic(t, func() { testservice.RegisterCalculatorServer(serving.server, adder()) }); !strings.Contains(text, "after Serve") {
		t.Errorf("late: %q", text)
	}
}
