package guide_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// greeting answers one method.
func greeting() *testservice.Stub {
	return &testservice.Stub{OnNothing: func(context.Context) error { return nil }}
}

func TestDiscovery_OneMachine(t *testing.T) {
	t.Setenv("FULMAR_REGISTRY", filepath.Join(t.TempDir(), "registry"))
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		Address:  "127.0.0.1:0",
		Registry: cluster.Directory{},
		Service:  "orders",
	})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, greeting())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "file:///orders"})
	if err != nil {
		t.Fatal(err)
	}
	if err := testservice.NewEchoClient(client).Nothing(ctx, fulmar.WaitForReady(true), fulmar.Timeout(time.Minute)); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func ordersByDNS() (*fulmar.Client, error) {
	orders, err := cluster.NewDNS(cluster.DNSConfig{Name: "orders.example:8888", Refresh: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return fulmar.NewClient(fulmar.ClientConfig{Target: "orders", Resolver: orders})
}

func TestDiscovery_DNS(t *testing.T) {
	client, err := ordersByDNS()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// addressFile is a file with addresses.
type addressFile string

// Resolve delivers the list of a file, one address in each line, when it has changed.
func (f addressFile) Resolve(ctx context.Context, deliver func([]cluster.Instance)) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for last := ""; ; {
		data, err := os.ReadFile(string(f))
		if err != nil {
			cluster.Report(ctx, err)
		} else if text := string(data); text != last {
			last = text
			var list []cluster.Instance
			for _, address := range strings.Fields(text) {
				list = append(list, cluster.Instance{Address: address})
			}
			deliver(list)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestDiscovery_AResolverOfOnesOwn(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, greeting())
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	file := filepath.Join(t.TempDir(), "addresses")
	if err := os.WriteFile(file, []byte(address.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "orders", Resolver: addressFile(file)})
	if err != nil {
		t.Fatal(err)
	}
	if err := testservice.NewEchoClient(client).Nothing(context.Background(), fulmar.Timeout(time.Minute)); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	_ = server.Close()
	<-served
}
