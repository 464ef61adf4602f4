// Command kitex is a peer on the real Kitex for the interoperability tests; see
// package gopeer for how it is driven.
//
// Transports are bare, framed, ttheader, ttheader-framed, mux and mux-bare. A
// server is multiplexed or takes all of the others, whichever its transport is.
package main

//go:generate go tool kitex -module github.com/fulmar-rpc/fulmar/test/kitex -gen-path gen -no-dependency-check ../interop/everything.thrift
//go:generate go tool kitex -module github.com/fulmar-rpc/fulmar/test/kitex -gen-path gen -no-dependency-check ../interop/courier.thrift

import (
	"context"
	"flag"
	"io"
	"reflect"
	"time"

	"github.com/bytedance/gopkg/util/logger"
	"github.com/cloudwego/kitex/pkg/klog"

	"github.com/fulmar-rpc/fulmar/test/interop/gopeer"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	types "github.com/fulmar-rpc/fulmar/test/kitex/gen/everything"
)

// options are the flags that only this peer has.
type options struct {
	// handlers installs Kitex's TTHeader handlers, which it does not do by
	// itself: without them there are no business errors, no isn and no integer
	// keys, only metadata.
	handlers bool
	services string
	timeout  time.Duration
}

// quiet drops what a goroutine pool of Kitex says about panics: its multiplexed
// client has one over every control packet, and lives on.
type quiet struct{ logger.Logger }

func (quiet) CtxErrorf(context.Context, string, ...any) {}

func main() {
	// Kitex logs every failure that the cases ask for.
	klog.SetOutput(io.Discard)
	logger.SetDefaultLogger(quiet{})
	o := &options{}
	gopeer.Main(gopeer.Peer{
		Flags: func(flags *flag.FlagSet) {
			flags.BoolVar(&o.handlers, "handlers", true, "install the TTHeader handlers")
			flags.StringVar(&o.services, "services", "all", "what to serve: all, everything or courier")
			flags.DurationVar(&o.timeout, "timeout", 0, "the timeout of calls, which the client also announces; 0 is none")
		},
		Name:    o.name,
		Serve:   o.serve,
		Connect: o.connect,
		Types: notation.Types{Defaults: map[reflect.Type]func() any{
			reflect.TypeFor[types.Defaults](): func() any { return types.NewDefaults() },
		}},
	})
}

func (o *options) name() string {
	if o.handlers {
		return "kitex"
	}
	return "kitex-plain"
}
