// Command netfulmar runs this project's network library, without RPC.
package main

import (
	"bytes"
	"context"
	"net"

	"github.com/fulmar-rpc/fulmar/bench/netsuite"
	"github.com/fulmar-rpc/fulmar/eventloop"
)

func main() {
	var all []netsuite.Contestant
	for _, v := range variants() {
		all = append(all, netsuite.Contestant{Name: v.name, Serve: v.serve})
	}
	netsuite.Main(all...)
}

// variant is a way to use the library.
type variant struct {
	name   string
	config eventloop.Config
	// offload says that handlers must not wait, so that a user lets requests that
	// block go on elsewhere.
	offload bool
}

// variants are what the suite's names stand for: the defaults, and what can be
// chosen in their place.
func variants() []variant {
	return []variant{
		{name: "fulmar"},
		{name: "fulmar-inline", config: eventloop.Config{Dispatch: eventloop.DispatchInline}, offload: true},
		{name: "fulmar-spawn", config: eventloop.Config{Dispatch: eventloop.DispatchSpawn}},
		{name: "fulmar-std", config: eventloop.Config{Engine: eventloop.EngineStd}},
	}
}

func (v variant) serve(ctx context.Context, listener net.Listener, c netsuite.Case) error {
	loop, err := eventloop.NewListener(listener, v.config)
	if err != nil {
		return err
	}
	// Where callers share a connection none waits for another. Handlers that promise
	// not to wait need nothing for that.
	detach := c.Shared && !v.offload
	return loop.Serve(ctx, func(conn *eventloop.Conn) error { return v.handle(conn, detach) })
}

// directBytes is from where on a reply is written from where its request was
// received: copying 16 KiB takes as long as one more system call.
const directBytes = 16 << 10

// handle replies to one frame. It is called again at once while there are more,
// and what it leaves in the writer leaves together.
func (v variant) handle(conn *eventloop.Conn, detach bool) error {
	head, err := conn.Reader().Peek(netsuite.LengthBytes)
	if err != nil {
		return err
	}
	size, err := netsuite.FrameBytes(head)
	if err != nil {
		return err
	}
	frame, err := conn.Reader().Next(size)
	if err != nil {
		return err
	}
	switch {
	case detach:
		call := conn.Detach()
		answer := netsuite.Handle(frame)
		if !call.Attach() {
			_, err := conn.WriteBuffers([][]byte{answer})
			return err
		}
		conn.Writer().Append(answer)
	case v.offload && netsuite.Blocks(frame):
		request := bytes.Clone(frame) // frame is valid until the handler returns.
		conn.Hold()
		go reply(conn, request)
	case len(frame) >= directBytes:
		conn.Writer().Insert(netsuite.Handle(frame))
		return conn.Writer().Flush()
	default:
		conn.Writer().Append(netsuite.Handle(frame))
	}
	return nil
}

// reply handles a request beside others of its connection. A write fails only if
// the connection is gone, and then nobody waits for the reply.
func reply(conn *eventloop.Conn, request []byte) {
	defer conn.Release()
	_, _ = conn.WriteBuffers([][]byte{netsuite.Handle(request)})
}
