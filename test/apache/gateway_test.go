package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/apache/gen/orders"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// shop is behind the gateway.
type shop struct{ name string }

var _ orders.Orders = shop{}

func (s shop) Place(_ context.Context, order *orders.Order) (*orders.Receipt, error) {
	if len(order.Lines) == 0 {
		return nil, &orders.Refused{Reason: "nothing ordered in " + s.name}
	}
	return &orders.Receipt{Id: order.Id, Shop: s.name, Tenant: order.GetTenant(), Lines: order.Lines}, nil
}

// startShop serves with Apache Thrift, framed, until the test ends.
func startShop(t *testing.T, name string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	factory, err := transportFactory("framed")
	if err != nil {
		t.Fatal(err)
	}
	server := thrift.NewTSimpleServer4(orders.NewOrdersProcessor(shop{name}), &serverTransport{listener}, factory, thrift.NewTBinaryProtocolFactoryConf(configuration()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(server.Stop(), <-ended); err != nil {
			t.Errorf("shop %s: %v", name, err)
		}
	})
	return listener.Addr().String()
}

// startGateway starts the program of examples/gateway before two shops, until the test ends.
func startGateway(t *testing.T, europe, world string) (address string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gateway")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "examples", "gateway")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("examples/gateway does not build: %v\n%s", err, output)
	}
	command := exec.Command(program, "-listen", "127.0.0.1:0", "-europe", europe, "-world", world, "-protocol", "framed")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(command.Process.Signal(os.Interrupt), command.Wait()); err != nil {
			t.Errorf("the gateway: %v", err)
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 3 {
		t.Fatalf("the gateway prints %q, %v", line, err)
	}
	return words[2]
}

// place has the gateway place an order, with the tenant in a header, which Apache Thrift does
// not have: arguments and result are encoded by its library, and carried by a client of Fulmar.
func place(ctx context.Context, client *fulmar.Client, tenant string, order *orders.Order) (*orders.Receipt, error) {
	method, err := fulmar.RawMethod("Orders", "place", false)
	if err != nil {
		return nil, err
	}
	body, err := thrift.NewTSerializer().Write(ctx, &orders.OrdersPlaceArgs{Order: order})
	if err != nil {
		return nil, err
	}
	request, reply := fulmar.Raw(body), fulmar.Raw{}
	if err := client.Call(fulmar.WithPersistent(ctx, "TENANT", tenant), method, &request, &reply); err != nil {
		return nil, err
	}
	var result orders.OrdersPlaceResult
	if err := thrift.NewTDeserializer().Read(ctx, &result, reply); err != nil {
		return nil, err
	}
	if result.Refused != nil {
		return nil, result.Refused
	}
	return result.Success, nil
}

// TestGateway_OfTheExampleIsBeforeAndBehindApache has servers of Apache Thrift behind the
// program of examples/gateway. A client of Apache Thrift before it can say no tenant, and is
// told so; what such a client gets through a gateway is in TestThrough_ViewsPassWhatPeersSay
// of test/interop.
func TestGateway_OfTheExampleIsBeforeAndBehindApache(t *testing.T) {
	address := startGateway(t, startShop(t, "europe"), startShop(t, "world"))
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	forged := "forged"
	few := []*orders.Line{{Sku: "tea", Quantity: 2, Cents: 450}}
	many := make([]*orders.Line, 10_000)
	for i := range many {
		many[i] = &orders.Line{Sku: "nail", Quantity: 3, Cents: int64(i)}
	}
	for _, test := range []struct {
		order *orders.Order
		shop  string
	}{
		{&orders.Order{Id: 1, Region: "eu", Lines: few}, "europe"},
		{&orders.Order{Id: 2, Region: "us", Lines: few, Tenant: &forged, Wishes: map[string]string{"wrap": "red"}}, "world"},
		{&orders.Order{Id: 3, Region: "eu", Lines: many, Tenant: &forged}, "europe"},
	} {
		receipt, err := place(t.Context(), client, "acme", test.order)
		if err != nil {
			t.Fatal(err)
		}
		last := len(test.order.Lines) - 1
		if receipt.Id != test.order.Id || receipt.Shop != test.shop || receipt.Tenant != "acme" || len(receipt.Lines) != last+1 || *receipt.Lines[last] != *test.order.Lines[last] {
			t.Errorf("order %d: %s sells %s %d lines", test.order.Id, receipt.Shop, receipt.Tenant, len(receipt.Lines))
		}
	}
	_, err = place(t.Context(), client, "acme", &orders.Order{Id: 4, Region: "us"})
	if refused, ok := errors.AsType[*orders.Refused](err); !ok || refused.Reason != "nothing ordered in world" {
		t.Errorf("an empty order: %v", err)
	}

	transport, err := factoryTransport(address)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	api := orders.NewOrdersClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(configuration()))
	for range 2 {
		_, err = api.Place(t.Context(), &orders.Order{Id: 5, Region: "eu", Lines: few, Tenant: &forged})
		if exception, ok := errors.AsType[thrift.TApplicationException](err); !ok || exception.Error() != "no tenant" {
			t.Errorf("a client of Apache Thrift without tenant: %v", err)
		}
	}
}

// factoryTransport opens a framed connection.
func factoryTransport(address string) (thrift.TTransport, error) {
	factory, err := transportFactory("framed")
	if err != nil {
		return nil, err
	}
	transport, err := factory.GetTransport(thrift.NewTSocketConf(address, configuration()))
	if err != nil {
		return nil, err
	}
	return transport, transport.Open()
}
