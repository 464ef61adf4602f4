package roundtrip_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// echoing answers with what it was given: views with a field set, structs as new ones.
type echoing struct{ gate }

func (*echoing) Pass(_ context.Context, order viewmethods.OrderView) (viewmethods.OrderView, error) {
	order.SetRegion(order.Region())
	return order, nil
}

func (*echoing) Plain(_ context.Context, order *viewmethods.Order) (*viewmethods.Order, error) {
	return &viewmethods.Order{ID: order.ID, Region: order.Region, Image: order.Image}, nil
}

// BenchmarkViewMethods calls a method in either form from a client of the same process that has
// structs. In the cases echo-* of suite view the kernel has two thirds of what a server does, and
// hides the difference. Compare the least of many short runs.
func BenchmarkViewMethods(b *testing.B) {
	server, _ := serveGate(b, &echoing{}, fulmar.ServerConfig{})
	client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	for _, size := range []int{16, 1 << 10, 2 << 10, 4 << 10} {
		for _, form := range []struct{ name, method string }{{"view", "pass"}, {"struct", "plain"}} {
			method := &fulmar.MethodDesc{Service: viewmethods.GateServiceName, Name: form.method, Codec: thrift.Binary}
			args := &viewmethods.GatePlainArgs{Order: &viewmethods.Order{Region: "echo", Image: make([]byte, size)}}
			b.Run(fmt.Sprintf("%s-%d", form.name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var result viewmethods.GatePlainResult
					if err := client.Call(context.Background(), method, args, &result); err != nil || len(result.Success.Image) != size {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
