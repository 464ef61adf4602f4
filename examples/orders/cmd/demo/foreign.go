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
	"strings"
	"time"
)

// callFrom runs a foreign client, which calls the shop and prints a line of JSON
// for each step, and reports its lines.
func callFrom(ctx context.Context, report *report, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting a foreign client: %w", err)
	}
	lines, failed := 0, report.failed
	for scanner := bufio.NewScanner(output); scanner.Scan(); lines++ {
		var call struct {
			Runtime, What, Protocol, Result string
			OK                              bool
			Milliseconds                    float64
		}
		if err := json.Unmarshal(scanner.Bytes(), &call); err != nil {
			return errors.Join(fmt.Errorf("%s printed %q: %w", program, scanner.Text(), err), command.Cancel(), command.Wait())
		}
		report.line(call.Runtime, call.What, call.Protocol, call.Result, call.OK, time.Duration(call.Milliseconds*float64(time.Millisecond)))
	}
	if err := command.Wait(); err != nil && report.failed == failed {
		return fmt.Errorf("%s ended after %d lines: %w", program, lines, err)
	}
	if lines == 0 {
		return fmt.Errorf("%s printed nothing", program)
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
	return callFrom(ctx, report, python, client, "--port", port)
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
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
			return "", err
		}
		answer, err := io.ReadAll(conn)
		if err != nil {
			return "", err
		}
		status, _, _ := strings.Cut(string(answer), "\r\n")
		const logged = "first bytes 47 45 54 20 2f 20 48 54: HTTP/1.1, not enabled"
		if !server.log.contains(logged) {
			return "", fmt.Errorf("the log does not say %q", logged)
		}
		return status + "; logged: " + logged, expect("the answer", status, "HTTP/1.1 400 Bad Request")
	})
}
