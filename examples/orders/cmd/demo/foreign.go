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

// callFromPython runs the Python client, which calls every method over both
// protocols with two Thrift runtimes, and reports its lines.
func callFromPython(ctx context.Context, report *report, python, client, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, python, client, "--port", port)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting the Python client: %w", err)
	}
	lines, failed := 0, report.failed
	for scanner := bufio.NewScanner(output); scanner.Scan(); lines++ {
		var call struct {
			Runtime, What, Protocol, Result string
			OK                              bool
			Milliseconds                    float64
		}
		if err := json.Unmarshal(scanner.Bytes(), &call); err != nil {
			return fmt.Errorf("the Python client printed %q: %w", scanner.Text(), err)
		}
		report.line(call.Runtime, call.What, call.Protocol, call.Result, call.OK, time.Duration(call.Milliseconds*float64(time.Millisecond)))
	}
	if err := command.Wait(); err != nil && report.failed == failed {
		return fmt.Errorf("the Python client ended after %d lines: %w", lines, err)
	}
	if lines == 0 {
		return errors.New("the Python client printed nothing")
	}
	return nil
}

// refuseForeign speaks HTTP to the shop: it is told so in HTTP, and the log says
// what arrived.
func refuseForeign(ctx context.Context, report *report, server *runningServer) {
	report.step("HTTP on the Thrift port", "http", func() (string, error) {
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
