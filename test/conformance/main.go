// Command conformance runs the suites and tools of others that need something to talk to:
// nginx, between clients and servers of ours; sslyze, which scans TLS; h2spec, all cases,
// without TLS and with it; grpcurl, which lists, describes and calls what reflection tells it; and connectconformance,
// all cases about gRPC, with our server and with our client. It ends with what they say, and
// fails if something is not as it should be.
package main

//go:generate fulmar gen -o gen -I ../../examples/quotes/proto ../../examples/quotes/proto/quotes.proto
//go:generate go run ./generate -o gen

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/health"
	"github.com/fulmar-rpc/fulmar/reflection"
	"github.com/fulmar-rpc/fulmar/test/conformance/gen/quotes"
)

// patience bounds all suites: h2spec takes a tenth of a second where all cases pass, and up to
// 20 more for each that does not, connectconformance ten seconds, and more to be built.
const patience = 10 * time.Minute

func main() {
	nginx := flag.String("nginx", "", "the program nginx; without it, nothing is tried behind one")
	sslyze := flag.String("sslyze", "", "the program sslyze; without it, TLS is not scanned")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := run(ctx, *nginx, *sslyze, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run runs all of them.
func run(ctx context.Context, nginx, sslyze string, out io.Writer) error {
	var others []error
	if nginx == "" {
		fmt.Fprintln(out, "nginx: left out, because -nginx does not say where it is")
	} else {
		others = append(others, behindNginx(ctx, nginx, out))
	}
	if sslyze == "" {
		fmt.Fprintln(out, "sslyze: left out, because -sslyze does not say where it is")
	} else {
		others = append(others, scanned(ctx, sslyze, out))
	}
	return errors.Join(errors.Join(others...),
		serving(ctx, fulmar.ServerTLS{}, func(ctx context.Context, address string) error { return h2spec(ctx, address, out) }),
		h2specTLS(ctx, out),
		serving(ctx, fulmar.ServerTLS{}, func(ctx context.Context, address string) error { return grpcurl(ctx, address, out) }),
		connect(ctx, connectModes(), out))
}

// serving serves on a free port for as long as do takes.
func serving(ctx context.Context, secured fulmar.ServerTLS, do func(ctx context.Context, address string) error) (err error) {
	// What h2spec sends is wrong on purpose: nobody needs a line for each.
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", TLS: secured, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	quotes.RegisterQuotesServer(server, market{})
	reflection.Register(server)
	health.Register(server)
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
	return do(ctx, address.String())
}

// h2specTLS runs all of its cases over TLS.
func h2specTLS(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "h2spec")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	files, err := newIdentity(folder)
	if err != nil {
		return err
	}
	secured := fulmar.ServerTLS{Files: fulmar.CertificateFiles{Certificate: files.certificate, Key: files.key}}
	return serving(ctx, secured, func(ctx context.Context, address string) error { return h2spec(ctx, address, out, "-t", "-k") })
}

// h2spec runs all of its cases. It fails if one does not pass, or is skipped, which are
// those that find no answer with a body.
func h2spec(ctx context.Context, address string, out io.Writer, flags ...string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	suite := exec.CommandContext(ctx, "go", append([]string{"tool", "h2spec", "-h", host, "-p", port, "--timeout", "20"}, flags...)...)
	suite.Stdout, suite.Stderr = io.MultiWriter(out, &said), os.Stderr
	if err := suite.Run(); err != nil {
		return fmt.Errorf("h2spec %q: %w", flags, err)
	}
	if want := "145 tests, 145 passed, 0 skipped, 0 failed"; !strings.Contains(said.String(), want) {
		return fmt.Errorf("h2spec %q does not say %q", flags, want)
	}
	return nil
}
