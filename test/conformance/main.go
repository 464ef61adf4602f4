// Command conformance runs the suites of others that need a server to talk to: h2spec, all
// cases, against a server of Fulmar. It ends with what the suite says of itself, and fails if
// a case did.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// patience bounds a suite: h2spec takes a tenth of a second where all cases pass, and up to
// 20 more for each that does not.
const patience = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run serves on a free port for as long as the suite takes, which writes to out.
func run(ctx context.Context, out io.Writer) (err error) {
	// What the suite sends is wrong on purpose: nobody needs a line for each.
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	address, err := server.Listen()
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return err
	}
	suite := exec.CommandContext(ctx, "go", "tool", "h2spec", "-h", host, "-p", port, "--timeout", "20")
	suite.Stdout, suite.Stderr = out, os.Stderr
	if err := suite.Run(); err != nil {
		return fmt.Errorf("h2spec: %w", err)
	}
	return nil
}
