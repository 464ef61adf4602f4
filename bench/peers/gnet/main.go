//go:build linux

// Command gnet runs gnet with its defaults: one event loop, in which handlers
// run.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"
	"github.com/panjf2000/gnet/v2/pkg/pool/goroutine"
	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/bench/netsuite"
)

func main() {
	netsuite.Main(netsuite.Contestant{Name: "gnet", Modules: []string{"github.com/panjf2000/gnet/v2"}, ServeAddress: serve})
}

func serve(ctx context.Context, network, address string, c netsuite.Case, ready func(string) error) error {
	s := &server{ctx: ctx, ready: ready, pool: goroutine.Default()}
	defer s.pool.Release()
	// One loop is the default, and with two processors the faster choice wherever
	// handlers are short. Handlers that compute need the other processor.
	multicore := c.BurnShare > 0
	prefix := network + "://"
	if network == "unix" {
		prefix += "./" // Without it the "@" of an abstract name would be taken for that of a user.
	}
	err := gnet.Run(s, prefix+address, gnet.WithMulticore(multicore), gnet.WithLogger(logger{}))
	if err == nil {
		err = s.err
	}
	return err
}

// logger prints what has gone wrong. gnet's own also tells that it starts.
type logger struct{}

var _ logging.Logger = logger{}

func (logger) Debugf(string, ...any) {}
func (logger) Infof(string, ...any)  {}
func (logger) Warnf(string, ...any)  {}

func (logger) Errorf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "gnet: "+format+"\n", arguments...)
}

func (l logger) Fatalf(format string, arguments ...any) { l.Errorf(format, arguments...) }

type server struct {
	gnet.BuiltinEventEngine
	ctx   context.Context
	ready func(string) error
	pool  *goroutine.Pool
	err   error
}

// OnBoot is called when the loops run and the socket listens.
func (s *server) OnBoot(engine gnet.Engine) gnet.Action {
	address, err := listens(engine)
	if err == nil {
		err = s.ready(address)
	}
	if err != nil {
		s.err = err
		return gnet.Shutdown
	}
	context.AfterFunc(s.ctx, func() { _ = engine.Stop(context.Background()) })
	return gnet.None
}

// listens returns the address of the engine's socket.
func listens(engine gnet.Engine) (string, error) {
	fd, err := engine.Dup()
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	switch name, err := unix.Getsockname(fd); name := name.(type) {
	case *unix.SockaddrInet4:
		return net.JoinHostPort(net.IP(name.Addr[:]).String(), strconv.Itoa(name.Port)), nil
	case *unix.SockaddrUnix:
		return name.Name, nil
	default:
		return "", fmt.Errorf("socket of type %T: %w", name, err)
	}
}

// batchMax is how many replies leave with one write.
const batchMax = 64

// OnTraffic replies to the requests that have arrived. What waits goes to
// gnet's pool of goroutines; what computes stays in the loop, because there are
// as many loops as processors then.
func (s *server) OnTraffic(conn gnet.Conn) gnet.Action {
	var batch [batchMax][]byte
	for {
		replies, size, action := s.collect(conn, batch[:0])
		if action != gnet.None || size == 0 {
			return action
		}
		var err error
		switch len(replies) {
		case 0:
		case 1:
			_, err = conn.Write(replies[0])
		default:
			_, err = conn.Writev(replies)
		}
		if err != nil {
			return gnet.Close
		}
		if _, err := conn.Discard(size); err != nil {
			return gnet.Close
		}
	}
}

// collect appends replies to whole frames, and returns how many bytes those had.
func (s *server) collect(conn gnet.Conn, replies [][]byte) (_ [][]byte, size int, _ gnet.Action) {
	arrived := conn.InboundBuffered()
	if arrived < netsuite.LengthBytes {
		return nil, 0, gnet.None
	}
	head, err := conn.Peek(netsuite.LengthBytes)
	if err != nil {
		return nil, 0, gnet.Close
	}
	// Looking at more than a frame that is incomplete would copy it each time.
	if first, err := netsuite.FrameBytes(head); err != nil {
		return nil, 0, gnet.Close
	} else if first > arrived {
		return nil, 0, gnet.None
	}
	all, err := conn.Peek(arrived)
	if err != nil {
		return nil, 0, gnet.Close
	}
	for len(all)-size >= netsuite.LengthBytes && len(replies) < batchMax {
		next, err := netsuite.FrameBytes(all[size:])
		if err != nil {
			return nil, 0, gnet.Close
		}
		if next > len(all)-size {
			break
		}
		frame := all[size : size+next]
		size += next
		if !netsuite.Blocks(frame) {
			replies = append(replies, netsuite.Handle(frame))
			continue
		}
		request := bytes.Clone(frame)
		if err := s.pool.Submit(func() { _ = conn.AsyncWrite(netsuite.Handle(request), nil) }); err != nil {
			return nil, 0, gnet.Close
		}
	}
	return replies, size, gnet.None
}
