package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// A connection that calls share asks its server for a sign of life when calls wait
// and nothing has arrived for PoolConfig.Ping, and fails with its calls if nothing
// comes for as long again. The system notices machines and networks that are gone
// (eventloop.Config.UserTimeout); this is for processes that are stopped, and for what
// stands in between and keeps connections whose other end it has lost.
//
// A ping is a call of a method that no service can have, which the transport of a
// server answers itself. It is sent to servers of ours only.

// emptyStruct is the body of a ping and of its answer.
const emptyStruct = "\x00"

// quietSinceLocked returns since when the connection has waited for something to
// arrive.
func (c *muxConn) quietSinceLocked() time.Time {
	heard := c.base.Add(time.Duration(c.heard.Load()))
	if heard.Before(c.busySince) {
		return c.busySince
	}
	return heard
}

// pingLocked pings the server if it is time to, and returns when to look again; zero
// if there is nothing to look at.
func (c *muxConn) pingLocked(now time.Time) (next time.Time) {
	if c.pause <= 0 || c.pinging || len(c.calls) == 0 {
		return time.Time{}
	}
	due := c.quietSinceLocked().Add(c.pause)
	if now.Before(due) {
		return due
	}
	c.pinging = true
	go c.ping()
	return time.Time{}
}

// ping fails the connection if nothing arrives for as long as a ping may take. One that
// was not on its way for at least half of that shows nothing: it waited behind a message
// that takes long, whose time is watched where it is written
// (eventloop.Config.UserTimeout and WriteStallTimeout). Then the next one follows.
func (c *muxConn) ping() {
	before := c.heard.Load()
	c.pinged.Store(0)
	err := c.askForLife()
	pinged := c.pinged.Load()
	told := pinged != 0 && time.Duration(c.since(time.Now())-pinged) >= c.pause/2
	if errors.Is(err, context.DeadlineExceeded) && told && c.heard.Load() == before {
		c.fail(fmt.Errorf("nothing has arrived for %v, not even the answer to a ping", 2*c.pause))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinging = false
	if c.err == nil {
		c.wakeLocked(c.pingLocked(time.Now()))
	}
}

// pingSent notes when the ping was handed to the network.
func (c *muxConn) pingSent(request *Request) {
	if request.state.Load() == stateSent {
		c.pinged.Store(c.since(time.Now()))
	}
}

func (c *muxConn) askForLife() error {
	request, err := c.peer.NewRequest(Method{Name: wire.PingMethod, Qualified: wire.PingMethod}, RequestHead{})
	if err != nil {
		return err
	}
	defer request.Release()
	request.call.ping = true
	defer func() { request.call.ping = false }()
	request.Body().AppendString(emptyStruct)
	ctx, cancel := context.WithTimeout(context.Background(), c.pause)
	defer cancel()
	response, err := c.call(ctx, request)
	if err == nil {
		response.Release()
	}
	return err
}

// isPing reports whether a message of a client of ours is a ping.
func isPing(message *wire.Message, service []byte) bool {
	return hasTTHeader(message.Protocol) && message.Payload == wire.PayloadThrift && message.Type == thriftwire.Call && len(service) == 0 && string(message.Name) == wire.PingMethod
}

// answerPing answers one.
func (in *Inbound) answerPing() {
	reply, err := in.NewReply(wire.PingMethod, ReplyHead{})
	if err != nil {
		return // its head is empty, so there is nothing that could be too long
	}
	defer reply.Release()
	reply.Body().AppendString(emptyStruct)
	// An error means that the connection is gone, and nobody waits any more.
	_ = reply.Send()
}
