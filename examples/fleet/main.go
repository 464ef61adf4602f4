// Command fleet shows service governance without anything but a folder: servers that find
// their way into it, a client that finds them there, and what becomes of its calls when one
// of them is killed, comes back, or stops as it should, and when the policy changes.
//
//	fleet -demo                                  all of it, in half a minute
//	fleet -serve a -address 127.0.0.1:9001       one server, in the folder of the user
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// patience bounds the demo, which takes a quarter of it.
const patience = 2 * time.Minute

func main() {
	demo := flag.Bool("demo", false, "start three servers as processes, and show what happens")
	name := flag.String("serve", "", "serve under this name")
	address := flag.String("address", "127.0.0.1:0", "where to serve")
	folder := flag.String("folder", cluster.DefaultDirectory(), "the folder in which servers are announced")
	policy := flag.String("policy", "", "a file with a policy")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *demo:
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err = run(ctx, os.Stdout)
	case *name != "":
		err = serve(ctx, *folder, *policy, *name, *address)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}
