package guide_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// account pays from a limit.
func account(spent, amount, limit int) error {
	if spent+amount > limit {
		return fulmar.NewBusinessError(1001, "limit reached", map[string]string{"left": fmt.Sprint(limit - spent)})
	}
	return nil
}

// remaining reads what account says.
func remaining(err error) (left string) {
	var business *fulmar.BusinessError
	if errors.As(err, &business) && business.Status() == 1001 {
		left = business.Extra()["left"]
	}
	return left
}

// served is what a handler of the guide knows and does.
func served(ctx context.Context) (trace, tenant, caller string, err error) {
	call, _ := fulmar.CallFrom(ctx)
	trace, _ = call.Metadata().Persistent("TRACE_ID")
	tenant, _ = call.Metadata().Transient("TENANT")
	caller = call.CallerService()
	err = fulmar.SetReplyMetadata(ctx, "SERVED_BY", "shop-3")
	return trace, tenant, caller, err
}

// connect serves a stub until the test ends and returns a client for it.
func connect(t *testing.T, stub *testservice.Stub) testservice.EchoClient {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, stub)
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background()) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String(), Caller: "checkout"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Shutdown(context.Background()), <-ended); err != nil {
			t.Error(err)
		}
	})
	return testservice.NewEchoClient(client)
}

func TestMetadata_TravelsWithTheCall(t *testing.T) {
	const wait = time.Minute
	var left time.Duration
	api := connect(t, &testservice.Stub{OnVersion: func(ctx context.Context) (string, error) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		trace, tenant, caller, err := served(ctx)
		return trace + " " + tenant + " " + caller, err
	}})
	ctx := t.Context()

	ctx = fulmar.WithPersistent(ctx, "TRACE_ID", "4bf92f35")
	ctx = fulmar.WithTransient(ctx, "TENANT", "north")
	var back map[string]string
	version, err := api.Version(ctx, fulmar.ReceiveMetadata(&back), fulmar.Timeout(wait))

	if err != nil || version != "4bf92f35 north checkout" {
		t.Errorf("the handler saw %q, %v", version, err)
	}
	if !maps.Equal(back, map[string]string{"SERVED_BY": "shop-3"}) {
		t.Errorf("the caller got %v", back)
	}
	if left <= 0 || left > wait {
		t.Errorf("the handler has %v left of %v", left, wait)
	}
}

func TestBusinessErrors_Arrive(t *testing.T) {
	api := connect(t, &testservice.Stub{OnNothing: func(context.Context) error { return account(90, 20, 100) }})
	if got := remaining(api.Nothing(t.Context())); got != "10" {
		t.Errorf("the caller sees that %q is left, want 10", got)
	}
}
