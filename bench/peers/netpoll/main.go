//go:build linux

// Command netpoll runs Netpoll, with one poller, which is its default below 20
// processors, and with two.
package main

import (
	"context"
	"net"

	"github.com/bytedance/gopkg/util/gopool"
	"github.com/cloudwego/netpoll"
	"github.com/cloudwego/netpoll/mux"

	"github.com/fulmar-rpc/fulmar/bench/netsuite"
)

func main() {
	modules := []string{"github.com/cloudwego/netpoll"}
	netsuite.Main(
		netsuite.Contestant{Name: "netpoll", Modules: modules, Serve: server(1)},
		netsuite.Contestant{Name: "netpoll-2", Modules: modules, Serve: server(2)},
	)
}

func server(pollers int) func(context.Context, net.Listener, netsuite.Case) error {
	return func(ctx context.Context, listener net.Listener, c netsuite.Case) error {
		if err := netpoll.Configure(netpoll.Config{PollerNum: pollers}); err != nil {
			return err
		}
		// Netpoll calls handlers in its own pool of goroutines.
		handle, options := netpoll.OnRequest(inTurn), []netpoll.Option(nil)
		if c.Shared {
			handle = concurrently
			options = append(options, netpoll.WithOnConnect(func(ctx context.Context, conn netpoll.Connection) context.Context {
				return context.WithValue(ctx, queueKey{}, mux.NewShardQueue(mux.ShardSize, conn))
			}))
		}
		loop, err := netpoll.NewEventLoop(handle, options...)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = loop.Shutdown(context.Background()) })
		defer stop()
		return loop.Serve(listener)
	}
}

// waits tells whether the next frame is not complete yet, so that reading it
// would wait.
func waits(reader netpoll.Reader) bool {
	if reader.Len() < netsuite.LengthBytes {
		return true
	}
	head, err := reader.Peek(netsuite.LengthBytes)
	if err != nil {
		return true
	}
	size, err := netsuite.FrameBytes(head)
	return err != nil || reader.Len() < size
}

// nextBytes waits for the head of a frame, and returns the frame's length.
func nextBytes(reader netpoll.Reader) (int, error) {
	head, err := reader.Peek(netsuite.LengthBytes)
	if err != nil {
		return 0, err
	}
	return netsuite.FrameBytes(head)
}

// inTurn replies to the requests that have arrived, with one write. It is called
// again when there are more.
func inTurn(_ context.Context, conn netpoll.Connection) error {
	reader, writer := conn.Reader(), conn.Writer()
	for reader.Len() > 0 {
		size, err := nextBytes(reader)
		if err != nil {
			return conn.Close()
		}
		frame, err := reader.Next(size)
		if err != nil {
			return conn.Close()
		}
		// Long frames are not copied: they are written from where they were read,
		// before Release.
		if _, err := writer.WriteBinary(netsuite.Handle(frame)); err != nil {
			return conn.Close()
		}
		if !waits(reader) {
			continue
		}
		if err := writer.Flush(); err != nil {
			return conn.Close()
		}
		if err := reader.Release(); err != nil {
			return conn.Close()
		}
	}
	return nil
}

type queueKey struct{}

// concurrently gives each request a goroutine of the pool, and sends replies
// through the queue, which is what Kitex does with multiplexed connections.
func concurrently(ctx context.Context, conn netpoll.Connection) error {
	queue, _ := ctx.Value(queueKey{}).(*mux.ShardQueue)
	reader := conn.Reader()
	for reader.Len() > 0 {
		size, err := nextBytes(reader)
		if err != nil {
			return conn.Close()
		}
		request, err := reader.Slice(size)
		if err != nil {
			return conn.Close()
		}
		gopool.Go(func() {
			reply, ok := answer(request, size)
			queue.Add(func() (netpoll.Writer, bool) { return reply, !ok })
		})
	}
	return nil
}

func answer(request netpoll.Reader, size int) (reply netpoll.Writer, ok bool) {
	frame, err := request.Next(size)
	if err != nil {
		return nil, false
	}
	buffer := netpoll.NewLinkBuffer(size)
	if _, err := buffer.WriteBinary(netsuite.Handle(frame)); err != nil {
		return nil, false
	}
	return buffer, buffer.Flush() == nil && request.Release() == nil
}
