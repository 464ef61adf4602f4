package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/contrib/etcd"
)

// Example announces a server for as long as it runs.
func Example() {
	err := serve(context.Background())
	fmt.Println(err)
}

func serve(ctx context.Context) (err error) {
	registry, err := etcd.New(etcd.Config{
		Endpoints: []string{"etcd-1.internal:2379", "etcd-2.internal:2379", "etcd-3.internal:2379"},
		TLS:       &tls.Config{MinVersion: tls.VersionTLS13},
		Username:  "orders",
		Password:  etcd.Secret(os.Getenv("ETCD_PASSWORD")),
	})
	if err != nil {
		return err
	}
	defer registry.Close()

	// When the server accepts connections, and not before.
	registration, err := registry.Register(ctx, "orders", cluster.Instance{
		Address: "10.0.0.1:8888", Weight: 10, Zone: "west", Tags: map[string]string{"version": "2"},
	})
	if err != nil {
		return err
	}

	<-ctx.Done()

	// Before the server stops, so that clients leave it alone first.
	within, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return registration.Withdraw(within)
}

// Example_resolver prints the instances of a service whenever they change.
func Example_resolver() {
	err := find(context.Background())
	fmt.Println(err)
}

func find(ctx context.Context) error {
	registry, err := etcd.New(etcd.Config{Endpoints: []string{"etcd-1.internal:2379"}})
	if err != nil {
		return err
	}
	defer registry.Close()
	resolver, err := registry.Resolver("orders")
	if err != nil {
		return err
	}
	return resolver.Resolve(ctx, func(instances []cluster.Instance) {
		for _, instance := range instances {
			fmt.Println(instance.Address, instance.Weight, instance.Zone)
		}
	})
}

// Example_policy follows what Kitex's settings say of the calls of shop to orders.
func Example_policy() {
	err := follow(context.Background())
	fmt.Println(err)
}

func follow(ctx context.Context) error {
	registry, err := etcd.New(etcd.Config{Endpoints: []string{"etcd-1.internal:2379"}})
	if err != nil {
		return err
	}
	defer registry.Close()
	source, err := registry.KitexClientPolicy("shop", "orders", "Orders")
	if err != nil {
		return err
	}
	return source.Watch(ctx, func(document []byte, version string) {
		slog.Info("policy", "version", version, "document", string(document))
		for _, problem := range source.Problems() {
			slog.Warn("a setting is not in force", "problem", problem)
		}
	})
}
