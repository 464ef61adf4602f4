package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// splitConn is a connection whose writes go in two parts, and whose reads bring a
// part first.
type splitConn struct {
	net.Conn
	// at is where; below 0 every byte goes by itself.
	at *atomic.Int64
	// read counts what has been read since the last write, which only one
	// goroutine does.
	read atomic.Int64
	// longest is the longest write.
	longest *atomic.Int64
}

// gap is how long the second part waits, so that the first is seen by itself.
const gap = 100 * time.Microsecond

func (c *splitConn) Write(b []byte) (n int, err error) {
	c.read.Store(0)
	c.longest.Store(max(c.longest.Load(), int64(len(b))))
	at := int(c.at.Load())
	if at < 0 {
		for i := range b {
			if _, err := c.Conn.Write(b[i : i+1]); err != nil {
				return i, err
			}
		}
		return len(b), nil
	}
	if at > 0 && at < len(b) {
		if n, err = c.Conn.Write(b[:at]); err != nil {
			return n, err
		}
		time.Sleep(gap)
		b = b[at:]
	}
	more, err := c.Conn.Write(b)
	return n + more, err
}

func (c *splitConn) Read(b []byte) (int, error) {
	at := c.at.Load()
	switch read := c.read.Load(); {
	case at < 0:
		b = b[:min(len(b), 1)]
	case read < at:
		b = b[:min(int64(len(b)), at-read)]
	}
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// splits is S1: requests and replies arrive in parts, cut at every byte.
func splits(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	fleet, err := startFleet(&closing, 1, fulmar.ServerConfig{})
	if err != nil {
		return seen, err
	}
	var ids callers
	var books []*ledger.Book
	lengths := []int{size.of(30, 3500)}
	if !size.short {
		lengths = append(lengths, 0, 200)
	}
	cuts, different := 0, 0
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.TTHeaderFramed, fulmar.Framed, fulmar.Bare} {
		for _, length := range lengths {
			var at, longest atomic.Int64
			api, err := client(&closing, fulmar.ClientConfig{
				Target: fleet.servers[0].Address, Protocol: protocol, Timeout: -1,
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					var dialer net.Dialer
					conn, err := dialer.DialContext(ctx, network, address)
					return &splitConn{Conn: conn, at: &at, longest: &longest}, err
				},
			})
			if err != nil {
				return seen, err
			}
			payload := make([]byte, length)
			for i := range payload {
				payload[i] = byte(i*7 + i>>8)
			}
			one := &caller{api: api, book: ids.book(), limit: 5 * time.Second, request: chaosapi.Request{Payload: payload}}
			one.same = func(reply *chaosapi.Reply) {
				if string(reply.Payload) != string(payload) {
					different++
				}
			}
			books = append(books, one.book)
			one.call(ctx) // tells how long a request is
			for cut := int64(-1); cut <= longest.Load(); cut++ {
				at.Store(cut)
				one.call(ctx)
				cuts++
			}
		}
	}
	executions, err := fleet.executions()
	if err != nil {
		return seen, err
	}
	verdict := ledger.Judge(books, executions, 0)
	seen.note("cuts %s", thousands(int64(cuts)))
	seen.most("failed", float64(verdict.Failed()), 0, "")
	seen.most("different", float64(different), 0, "")
	seen.judged(verdict)
	return seen, nil
}
