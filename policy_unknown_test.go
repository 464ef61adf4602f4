package fulmar_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/policy"
)

// takesAll is a server that answers everything, also what is not registered: each call for
// one release, or all at once if that is nil.
func takesAll(document policy.Server, release chan struct{}) fulmar.ServerConfig {
	wait := func() {
		if release != nil {
			<-release
		}
	}
	return fulmar.ServerConfig{
		Policy: document,
		UnknownHandler: func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) {
			wait()
			return request, nil
		},
		UnknownStreamHandler: func(_ context.Context, messages *fulmar.ServerMessages) error {
			var message fulmar.Raw
			if err := messages.Recv(&message); err != nil {
				return err
			}
			wait()
			return messages.Send(&message)
		},
	}
}

// callNamed calls a method that nobody has defined.
func callNamed(t *testing.T, client *fulmar.Client, service, name string) error {
	t.Helper()
	method, err := fulmar.RawMethod(service, name, false)
	if err != nil {
		t.Fatal(err)
	}
	return client.Call(context.Background(), method, &fulmar.Raw{0}, new(fulmar.Raw))
}

// streamNamed opens a stream of a method that nobody has defined, and exchanges a message.
func streamNamed(t *testing.T, client *fulmar.Client, service, name string) error {
	t.Helper()
	method, err := fulmar.RawMethod(service, name, false)
	if err != nil {
		t.Fatal(err)
	}
	method.ClientStreams, method.ServerStreams = true, true
	stream, err := client.OpenStream(context.Background(), method)
	if err != nil {
		return err
	}
	defer stream.Cancel()
	if err := stream.Send(&fulmar.Raw{0}); err != nil && err != io.EOF {
		return err
	}
	var message fulmar.Raw
	if err := stream.Recv(&message); err != nil {
		return err
	}
	if err := stream.Recv(&message); err != io.EOF {
		return fmt.Errorf("it ended with %v", err)
	}
	return nil
}

// TestServerPolicy_UnknownMethods: what a document names is limited although it is not
// registered, calls and streams, and what it does not name is not.
func TestServerPolicy_UnknownMethods(t *testing.T) {
	limit := policy.Limit{PerSecond: 1, Burst: 3}
	for _, way := range directWays {
		for kind, call := range map[string]func(*testing.T, *fulmar.Client, string, string) error{"calls": callNamed, "streams": streamNamed} {
			for named, text := range map[string]string{
				"Orders":               "limit of Orders: 1 calls in a second",
				"Orders.place":         "limit of Orders.place: 1 calls in a second",
				"Orders/place":         "limit of Orders.place: 1 calls in a second",
				"shop.v1.Orders":       "limit of shop.v1.Orders: 1 calls in a second",
				"shop.v1.Orders/place": "limit of shop.v1.Orders.place: 1 calls in a second",
				"shop.v1.Orders.place": "limit of shop.v1.Orders.place: 1 calls in a second",
			} {
				t.Run(way+" "+kind+" "+named, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						document := policy.Server{Methods: map[string]policy.Limit{named: limit}}
						s := newStreamingOf(t, way, func(*fulmar.Server) {}, takesAll(document, nil), fulmar.ClientConfig{})
						service := "Orders"
						if named[0] == 's' {
							service = "shop.v1.Orders"
						}
						for range 3 {
							if err := call(t, s.client, service, "place"); err != nil {
								t.Fatal(err)
							}
						}
						for range 5 {
							wantOverLimit(t, call(t, s.client, service, "place"), text)
						}
						for _, other := range []string{"order", "orders", "Orders2", "shop.v1", "v1.Orders"} {
							for range 5 {
								if err := call(t, s.client, other, "place"); err != nil {
									t.Errorf("%s: %v", other, err)
								}
							}
						}
						// The counts go on under another document that names it.
						if err := s.server.SetPolicy(policy.Server{Methods: map[string]policy.Limit{named: limit, "Other": limit}}); err != nil {
							t.Fatal(err)
						}
						wantOverLimit(t, call(t, s.client, service, "place"), text)
						time.Sleep(time.Second)
						if err := call(t, s.client, service, "place"); err != nil {
							t.Errorf("after a second: %v", err)
						}
						wantOverLimit(t, call(t, s.client, service, "place"), text)
						if err := s.server.SetPolicy(policy.Server{}); err != nil {
							t.Fatal(err)
						}
						if err := call(t, s.client, service, "place"); err != nil {
							t.Errorf("without limits: %v", err)
						}
					})
				})
			}
		}
	}
}

// TestServerPolicy_UnknownMethodsRunning: what runs counts until it has ended, also where
// one limit refuses what another one has let pass.
func TestServerPolicy_UnknownMethodsRunning(t *testing.T) {
	for _, way := range directWays {
		for kind, call := range map[string]func(*testing.T, *fulmar.Client, string, string) error{"calls": callNamed, "streams": streamNamed} {
			t.Run(way+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					document := policy.Server{Methods: map[string]policy.Limit{"Orders": {Running: 2}, "Orders.place": {Running: 5}}}
					s := newStreamingOf(t, way, func(*fulmar.Server) {}, takesAll(document, release), fulmar.ClientConfig{})
					for range 5 {
						ended := make(chan error, 2)
						for range cap(ended) {
							go func() { ended <- call(t, s.client, "Orders", "place") }()
						}
						time.Sleep(100 * time.Millisecond) // connections are opened meanwhile
						for range 10 {
							wantOverLimit(t, call(t, s.client, "Orders", "place"), "limit of Orders: too many at once (limit 2)")
						}
						for range cap(ended) {
							release <- struct{}{}
						}
						for range cap(ended) {
							if err := <-ended; err != nil {
								t.Fatal(err)
							}
						}
						// An answer may arrive before what has sent it gives its place back.
						synctest.Wait()
					}
				})
			})
		}
	}
}

// TestServerPolicy_UnknownMethodOfKnownService: the limit of a service is one for all its
// calls, whoever serves them.
func TestServerPolicy_UnknownMethodOfKnownService(t *testing.T) {
	config := takesAll(policy.Server{Methods: map[string]policy.Limit{"Echo": {PerSecond: 1, Burst: 4}}}, nil)
	r := serve(t, config, adder())
	client := dialAny(t, fulmar.ClientConfig{Target: r.address})
	api := dial(t, fulmar.ClientConfig{Target: r.address})
	began := time.Now()
	allowed := 0
	for range 20 {
		if _, err := api.Add(context.Background(), 1, 2); err == nil {
			allowed++
		}
		if err := callNamed(t, client, "Echo", "invented"); err == nil {
			allowed++
		}
	}
	if most := 5 + int(time.Since(began)/time.Second); allowed < 4 || allowed > most {
		t.Errorf("%d calls were allowed", allowed)
	}
}

// TestServerPolicy_UnknownMethodsOfProtocolsWithoutServices: a name that carries its service,
// as in Apache Thrift's multiplexed protocol, is limited like others; one that does not is no
// method of a service, and has the limits of all calls only.
func TestServerPolicy_UnknownMethodsOfProtocolsWithoutServices(t *testing.T) {
	document := policy.Server{Methods: map[string]policy.Limit{"Orders.place": {Running: 1}, "Orders": {PerSecond: 1, Burst: 1}}}
	for _, qualified := range []bool{false, true} {
		r := serveAny(t, takesAll(document, nil), func(fulmar.Registrar) {})
		client := dialAny(t, fulmar.ClientConfig{Target: r.address, Protocol: fulmar.Framed, QualifiedNames: qualified})
		refused := 0
		for range 20 {
			if callNamed(t, client, "Orders", "place") != nil {
				refused++
			}
		}
		if refused > 0 != qualified {
			t.Errorf("qualified names: %v; %d of 20 calls were refused", qualified, refused)
		}
	}
}

// TestServerPolicy_InventedNamesTakeNoMemory: peers make up names, which have no limiters,
// and cost no more than the call does without limits.
func TestServerPolicy_InventedNamesTakeNoMemory(t *testing.T) {
	methods := map[string]policy.Limit{}
	for i := range 1000 {
		methods[fmt.Sprintf("shop.v%d.Orders", i)] = policy.Limit{Running: 1000}
	}
	if services, named := fulmar.LimitersOf(policy.Server{Methods: methods}); services != 1000 || named != 1000 {
		t.Errorf("%d limiters of services and %d of methods for 1000 names", services, named)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStreamingOf(t, "ttheader", func(*fulmar.Server) {}, takesAll(policy.Server{Methods: methods}, nil), fulmar.ClientConfig{})
		for i := range 2000 {
			if err := callNamed(t, s.client, fmt.Sprintf("S%d", i), "m"); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.server.Limiters(); n != 2000 {
			t.Errorf("%d limiters behind calls of 2000 names", n)
		}
	})
}
