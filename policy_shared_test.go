package fulmar_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestClientPolicy_IsACopy: neither the maps that went in nor those that come out are those
// that hold.
func TestClientPolicy_IsACopy(t *testing.T) {
	r := serve(t, fulmar.ServerConfig{}, adder())
	document := func() policy.Client {
		return policy.Client{Methods: map[string]policy.Method{"Echo": {Timeout: time.Second}}}
	}
	given := document()
	client := dialAny(t, fulmar.ClientConfig{Target: r.address, Policy: given})
	check := func(given policy.Client) {
		t.Helper()
		given.Methods["Other"] = policy.Method{Timeout: -5}
		held, version, _ := client.Policy()
		held.Methods["not a name!"] = policy.Method{Retry: policy.Retry{Attempts: 1000}}
		delete(held.Methods, "Echo")
		if again, v, _ := client.Policy(); len(again.Methods) != 1 || again.Methods["Echo"].Timeout != time.Second || v != version {
			t.Errorf("%+v holds, version %d", again.Methods, v)
		}
	}
	check(given)
	given = document()
	if err := client.SetPolicy(given); err != nil {
		t.Fatal(err)
	}
	check(given)
}

// TestServerPolicy_IsACopy is the same for a server.
func TestServerPolicy_IsACopy(t *testing.T) {
	document := func() policy.Server {
		return policy.Server{Methods: map[string]policy.Limit{"Echo": {PerSecond: 7}}}
	}
	given := document()
	server := serve(t, fulmar.ServerConfig{Policy: given}, adder()).server
	check := func(given policy.Server) {
		t.Helper()
		given.Methods["Other"] = policy.Limit{PerSecond: 1}
		held, version, _ := server.Policy()
		held.Methods["not a name!"] = policy.Limit{PerSecond: 1}
		delete(held.Methods, "Echo")
		if again, v, _ := server.Policy(); len(again.Methods) != 1 || again.Methods["Echo"].PerSecond != 7 || v != version {
			t.Errorf("%+v holds, version %d", again.Methods, v)
		}
	}
	check(given)
	given = document()
	if err := server.SetPolicy(given); err != nil {
		t.Fatal(err)
	}
	check(given)
}

// TestPolicy_ReadModifyWrite: programs change what holds while calls of new methods ask for
// it, on both sides.
func TestPolicy_ReadModifyWrite(t *testing.T) {
	r := serve(t, fulmar.ServerConfig{UnknownHandler: func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) { return request, nil }}, adder())
	client := dialAny(t, fulmar.ClientConfig{Target: r.address, Policy: policy.Client{Methods: map[string]policy.Method{}}})
	if err := r.server.SetPolicy(policy.Server{Methods: map[string]policy.Limit{}}); err != nil {
		t.Fatal(err)
	}
	api := testservice.NewEchoClient(client)
	const times = 200
	var all sync.WaitGroup
	all.Go(func() {
		for i := range times {
			ofClient, _, _ := client.Policy()
			ofClient.Methods[fmt.Sprintf("S%d", i)] = policy.Method{Timeout: time.Second}
			ofServer, _, _ := r.server.Policy()
			ofServer.Methods[fmt.Sprintf("S%d", i)] = policy.Limit{Running: 1000}
			if err := client.SetPolicy(ofClient); err != nil {
				t.Error(err)
			}
			if err := r.server.SetPolicy(ofServer); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for i := range times {
			method, err := fulmar.RawMethod("S", fmt.Sprintf("m%d", i), false)
			if err != nil {
				t.Error(err)
				return
			}
			in, out := fulmar.Raw{0}, fulmar.Raw{}
			if err := client.Call(context.Background(), method, &in, &out); err != nil {
				t.Error(err)
			}
			if _, err := api.Add(context.Background(), 1, 2); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}
