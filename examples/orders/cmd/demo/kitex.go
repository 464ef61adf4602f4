package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/shop"
)

// kitex is the program of test/kitex/shop: the same service on the real Kitex.
type kitex struct {
	program string
	// data is the file that its shop starts with, the one of ours.
	data string
}

// callsUs lets a Kitex client call our server in each of its ways.
func (k kitex) callsUs(ctx context.Context, report *report, server *runningServer) error {
	call := func(transport string) error {
		names := []string{"Orders.get", "Orders.search", "Orders.place, stock", "Orders.viewed (oneway)", "declared exception"}
		if transport != "framed" {
			names = append(names, "metadata both ways", "business error")
		}
		if transport == "mux" {
			names = append(names, "concurrent calls")
		}
		return callFrom(ctx, report, foreignSteps("Kitex", transport, names), k.program, "call", "-address", server.address, "-transport", transport, "-data", k.data)
	}
	for _, transport := range []string{"framed", "ttheader", "ttheader-framed"} {
		if err := call(transport); err != nil {
			return err
		}
	}
	before := server.accepted()
	if err := call("mux"); err != nil {
		return err
	}
	report.step("Kitex", "connections of all of these", "mux", func() (string, error) {
		opened := server.accepted() - before
		return fmt.Sprintf("%d", opened), expect("the number of connections", opened, uint64(1))
	})
	return nil
}

// isCalled calls a Kitex server from Go, with a connection for each call and
// with calls that share connections.
func (k kitex) isCalled(ctx context.Context, report *report, file *shop.File) error {
	for _, transport := range []string{"ttheader", "mux"} {
		if err := k.visit(ctx, report, transport, file); err != nil {
			return err
		}
	}
	return nil
}

func (k kitex) visit(ctx context.Context, report *report, transport string, file *shop.File) (err error) {
	server, err := k.start(ctx, transport)
	if err != nil {
		return err
	}
	defer func() {
		if failed := server.stop(); failed != nil {
			err = errors.Join(err, failed, context.Cause(ctx))
		}
	}()
	shared := transport == "mux"
	visit, err := newVisit("Go to Kitex", transport, fulmar.ClientConfig{Target: server.address, AssumeMultiplexed: shared}, file)
	if err != nil {
		return err
	}
	defer visit.close()
	visit.callEverything(ctx, report)
	visit.step(ctx, report, "declared exception", visit.outOfStock)
	visit.callWithLimit(ctx, report)
	if shared {
		visit.step(ctx, report, "concurrent calls", visit.manyAtOnce)
	}
	return nil
}

// kitexServer is a Kitex server that runs; it stops when its input ends.
type kitexServer struct {
	address string
	command *exec.Cmd
	input   io.Closer
}

func (k kitex) start(ctx context.Context, transport string) (*kitexServer, error) {
	command := exec.CommandContext(ctx, k.program, "serve", "-transport", transport, "-data", k.data)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the Kitex server: %w", err)
	}
	server := &kitexServer{command: command, input: input}
	// A process that the server started may outlive it and keep the pipe open.
	defer context.AfterFunc(ctx, func() { _ = output.Close() })()
	scanner := bufio.NewScanner(output)
	if !scanner.Scan() {
		return nil, errors.Join(errors.New("the Kitex server printed no address"), scanner.Err(), server.stop(), context.Cause(ctx))
	}
	server.address = strings.TrimSpace(scanner.Text())
	return server, nil
}

func (s *kitexServer) stop() error {
	if err := errors.Join(s.input.Close(), s.command.Wait()); err != nil {
		return fmt.Errorf("stopping the Kitex server: %w", err)
	}
	return nil
}
