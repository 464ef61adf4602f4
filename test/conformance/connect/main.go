// Command connect is what connectconformance tests: a server or a client of Fulmar in gRPC
// that does what it reads on its standard input, and says on its standard output what came
// of it.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience bounds the program, which would go on if somebody killed the suite.
const patience = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Not a deadline of ctx, which calls would tell their servers.
	defer time.AfterFunc(patience, stop).Stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "connect:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) == 1 {
		switch arguments[0] {
		case "server":
			return serve(ctx, in, out)
		case "client":
			return call(ctx, in, out)
		}
	}
	return fmt.Errorf("arguments %q: want server or client", arguments)
}

// logger has what must not happen, such as a panic in a handler. What peers do wrong, which
// a warning is about, they do on purpose here.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
