package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// foreignStep is what a line of a foreign client is about.
type foreignStep struct{ Runtime, Protocol, What string }

// foreignSteps returns a step for each name.
func foreignSteps(runtime, protocol string, names []string) []foreignStep {
	var steps []foreignStep
	for _, what := range names {
		steps = append(steps, foreignStep{runtime, protocol, what})
	}
	return steps
}

// callFrom runs a foreign client, which calls the shop and prints a line of JSON
// for each step, and reports its lines. It wants each of the steps once, and no
// others: a client that leaves one out has not shown that it works. The client
// is killed when ctx ends.
func callFrom(ctx context.Context, report *report, want []foreignStep, program string, arguments ...string) error {
	limited, kill := context.WithCancel(ctx)
	defer kill()
	command := exec.CommandContext(limited, program, arguments...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting a foreign client: %w", err)
	}
	// A process that the client started may outlive it and keep the pipe open.
	defer context.AfterFunc(limited, func() { _ = output.Close() })()
	failed := report.failed
	if err := readSteps(output, report, want); err != nil {
		kill()
		_ = command.Wait() // Says that it was killed.
		return errors.Join(fmt.Errorf("%s: %w", program, err), context.Cause(ctx))
	}
	// The exit code is 1 if a step failed, which is reported already.
	if err := command.Wait(); err != nil && (report.failed == failed || ctx.Err() != nil) {
		return errors.Join(fmt.Errorf("%s, after all steps: %w", program, err), context.Cause(ctx))
	}
	return nil
}

// readSteps reports the lines of a foreign client, until it ends.
func readSteps(output io.Reader, report *report, want []foreignStep) error {
	missing := slices.Clone(want)
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		var call struct {
			foreignStep
			Result       string
			OK           bool
			Milliseconds float64
		}
		if err := json.Unmarshal(scanner.Bytes(), &call); err != nil {
			return fmt.Errorf("printed %q: %w", scanner.Text(), err)
		}
		report.line(call.Runtime, call.What, call.Protocol, call.Result, call.OK, time.Duration(call.Milliseconds*float64(time.Millisecond)))
		at := slices.Index(missing, call.foreignStep)
		if at < 0 {
			return fmt.Errorf("nobody expects %+v, or not twice", call.foreignStep)
		}
		missing = slices.Delete(missing, at, at+1)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading its lines: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("left out %d of %d steps: %+v", len(missing), len(want), missing)
	}
	return nil
}

// callFromPython runs the Python client, which calls every method over both
// protocols with two Thrift runtimes.
func callFromPython(ctx context.Context, report *report, python, client, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	names := []string{
		"Orders.get", "Orders.get unknown", "Orders.search", "Orders.search with limit", "Orders.product",
		"Orders.place", "Orders.place too many", "Orders.place nothing", "Orders.turnover", "Orders.advance",
		"Orders.viewed", "Orders.stocktake", "Orders.stocktake in a hurry",
	}
	var want []foreignStep
	for _, runtime := range []string{"thriftpy2", "apache"} {
		for _, protocol := range []string{"bare", "framed"} {
			want = append(want, foreignSteps(runtime, protocol, names)...)
		}
	}
	return callFrom(ctx, report, want, python, client, "--port", port)
}

// refuseForeign speaks HTTP to the shop: it is told so in HTTP, and the log says
// what arrived.
func refuseForeign(ctx context.Context, report *report, server *runningServer) {
	report.step("Go", "HTTP on the Thrift port", "http", func() (string, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", server.address)
		if err != nil {
			return "", err
		}
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
			return "", err
		}
		answer, err := io.ReadAll(conn)
		if err != nil {
			return "", errors.Join(err, context.Cause(ctx))
		}
		status, _, _ := strings.Cut(string(answer), "\r\n")
		const logged = "first bytes 47 45 54 20 2f 20 48 54: HTTP/1.1, not enabled"
		if !server.log.contains(logged) {
			return "", fmt.Errorf("the log does not say %q", logged)
		}
		return status + "; logged: " + logged, expect("the answer", status, "HTTP/1.1 400 Bad Request")
	})
}
