package zookeeper_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/contrib/zookeeper"
)

// Example announces an instance, and finds it.
func Example() {
	err := announceAndFind(context.Background())
	fmt.Println(err)
}

func announceAndFind(ctx context.Context) error {
	registry, err := zookeeper.New(zookeeper.Config{
		Servers:  []string{"zk-1.internal:2181", "zk-2.internal:2181", "zk-3.internal:2181"},
		User:     "rpc",
		Password: zookeeper.Secret(os.Getenv("ZOOKEEPER_PASSWORD")),
		Common:   registries.Common{HoldTime: 2 * time.Minute, Logger: slog.Default()},
	})
	if err != nil {
		return err
	}
	defer registry.Close()
	if _, err := registry.Register(ctx, "orders", cluster.Instance{Address: "10.0.0.1:8888"}); err != nil {
		return err
	}
	resolver, err := registry.Resolver("orders")
	if err != nil {
		return err
	}
	return resolver.Resolve(ctx, func(instances []cluster.Instance) {
		fmt.Println(len(instances))
	})
}
