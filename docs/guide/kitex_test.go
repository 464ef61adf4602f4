package guide_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// tenants answers with what its callers' metadata says.
type tenants struct{ testservice.Stub }

func (*tenants) Echo(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
	call, _ := fulmar.CallFrom(ctx)
	tenant, ok := call.Metadata().Persistent("TENANT")
	if err := fulmar.SetReplyMetadata(ctx, "COST", "3"); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fulmar.NewBusinessError(1001, "limit reached", map[string]string{"limit": "5"})
	}
	trace, _ := call.Metadata().Transient("TRACE")
	return &testservice.Message{Text: message.Text + " " + tenant + " " + trace}, nil
}

func TestKitex_MetadataAndBusinessErrors(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &tenants{})
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address.String()})
	if err != nil {
		t.Fatal(err)
	}
	api := testservice.NewEchoClient(client)

	_, err = api.Echo(ctx, &testservice.Message{Text: "hello"})
	var business *fulmar.BusinessError
	if errors.As(err, &business) && business.Status() == 1001 {
		if business.Message() != "limit reached" || business.Extra()["limit"] != "5" {
			t.Errorf("the business error is %v, %v", business, business.Extra())
		}
	} else {
		t.Errorf("Echo without a tenant: %v", err)
	}
	callWithMetadata(ctx, t, api)

	_ = client.Close()
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func callWithMetadata(ctx context.Context, t *testing.T, api testservice.EchoClient) {
	t.Helper()
	ctx = fulmar.WithPersistent(ctx, "TENANT", "42") // travels on through all calls that follow
	ctx = fulmar.WithTransient(ctx, "TRACE", "on")   // one hop
	var back map[string]string
	reply, err := api.Echo(ctx, &testservice.Message{Text: "hello"}, fulmar.ReceiveMetadata(&back))
	if err != nil || reply.Text != "hello 42 on" {
		t.Errorf("Echo = %v, %v", reply, err)
	}
	if len(back) != 1 || back["COST"] != "3" {
		t.Errorf("the reply's metadata is %v", back)
	}
}

func TestKitex_AssumesMultiplexing(t *testing.T) {
	config := fulmar.ClientConfig{Target: "localhost:8888", AssumeMultiplexed: true}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
	config.Protocol = fulmar.Framed
	if err := config.Validate(); err == nil {
		t.Error("framed Thrift cannot be multiplexed, and Validate does not say so")
	}
}
