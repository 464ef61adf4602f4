// Command apache is a peer on Apache Thrift for Go for the interoperability
// tests; see package gopeer for how it is driven. Transports are bare and framed.
//
// Encoding, framing, client, processor map and server are Apache's own library.
// The types come from thriftgo, because Apache's compiler is to be had from no
// registry that a Go project needs anyway; command adapt says what is done to
// them.
package main

//go:generate go tool thriftgo -r -g go:package_prefix=github.com/fulmar-rpc/fulmar/test/apache/gen,ignore_initialisms -o gen ../interop/everything.thrift
//go:generate go tool thriftgo -r -g go:package_prefix=github.com/fulmar-rpc/fulmar/test/apache/gen,ignore_initialisms -o gen ../../examples/gateway/orders.thrift
//go:generate go run ./adapt context gen/base gen/everything gen/orders
//go:generate go run ./adapt copy ../kitex/rules/rules.go gen/rules/rules.go github.com/fulmar-rpc/fulmar/test/kitex/gen/ github.com/fulmar-rpc/fulmar/test/apache/gen/

import (
	"io"
	"log"
	"log/slog"
	"reflect"

	"github.com/fulmar-rpc/fulmar/test/apache/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gopeer"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
)

func main() {
	// Apache logs every failure that the cases ask for.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	gopeer.Main(gopeer.Peer{
		Name:    func() string { return "apache-go" },
		Serve:   serve,
		Connect: connect,
		Types: notation.Types{Defaults: map[reflect.Type]func() any{
			reflect.TypeFor[everything.Defaults](): func() any { return everything.NewDefaults() },
		}},
	})
}
