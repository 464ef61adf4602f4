//go:build linux

// Command netstd runs package net as most Go programs use it: a goroutine for
// each connection, with a buffered reader and writer.
package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"

	"github.com/fulmar-rpc/fulmar/bench/netsuite"
)

func main() { netsuite.Main(netsuite.Contestant{Name: "std", Serve: serve}) }

func serve(ctx context.Context, listener net.Listener, c netsuite.Case) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		handle := inTurn
		if c.Shared {
			handle = concurrently
		}
		go func() {
			defer conn.Close()
			// A connection that fails ends; its client notices.
			_ = handle(bufio.NewReader(conn), bufio.NewWriter(conn))
		}()
	}
}

// keptBytes is up to where a connection keeps its message buffer. Larger
// messages get memory of their own, which is free again afterwards.
const keptBytes = 64 << 10

// readFrame reads a frame into buffer, if that has room.
func readFrame(reader *bufio.Reader, buffer []byte) ([]byte, error) {
	head, err := reader.Peek(netsuite.LengthBytes)
	if err != nil {
		return nil, err
	}
	size, err := netsuite.FrameBytes(head)
	if err != nil {
		return nil, err
	}
	if size > cap(buffer) {
		buffer = make([]byte, size)
	}
	frame := buffer[:size]
	_, err = io.ReadFull(reader, frame)
	return frame, err
}

// inTurn replies to one request after the other. Replies to requests that have
// arrived together leave together.
func inTurn(reader *bufio.Reader, writer *bufio.Writer) error {
	var buffer []byte
	for {
		frame, err := readFrame(reader, buffer)
		if err != nil {
			return err
		}
		if cap(frame) <= keptBytes {
			buffer = frame
		}
		if _, err := writer.Write(netsuite.Handle(frame)); err != nil {
			return err
		}
		if reader.Buffered() > 0 {
			continue
		}
		if err := writer.Flush(); err != nil {
			return err
		}
	}
}

// concurrently gives each request a goroutine.
func concurrently(reader *bufio.Reader, writer *bufio.Writer) error {
	var mu sync.Mutex
	for {
		frame, err := readFrame(reader, nil)
		if err != nil {
			return err
		}
		go func() {
			reply := netsuite.Handle(frame)
			mu.Lock()
			defer mu.Unlock()
			// An error stays with the writer, and the reader notices as well.
			_, _ = writer.Write(reply)
			_ = writer.Flush()
		}()
	}
}
