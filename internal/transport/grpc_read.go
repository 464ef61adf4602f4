package transport

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// grpcRead is what came of bytes that were read.
type grpcRead struct {
	// used is how many there were, need how many there have to be for the next step.
	used, need int
	// congested: nothing is read until what waits to be sent was taken away, which was
	// done so many times.
	congested bool
	turns     uint64
	// goes: the server takes no more calls here. last: the connection is to be closed.
	goes, last bool
	// ended: there may be room for other calls.
	ended bool
}

// read takes replies off the connection until it fails.
func (c *grpcConn) read() {
	defer failOnPanic(c.peer.peer.config.Log, c.fail)
	c.conn.SpinReads()
	reader := c.conn.Reader()
	for {
		did, err := c.receive(reader.Buffered())
		if skipErr := reader.Skip(did.used); err == nil {
			err = skipErr
		}
		if err != nil {
			c.broken(err)
			return
		}
		c.flush()
		if did.goes {
			c.leave()
		}
		if did.ended || did.last {
			c.ended(did.last)
		}
		if did.congested {
			if err := c.awaitRoom(did.turns); err != nil {
				c.fail(err)
				return
			}
			continue
		}
		if reader.Len() == 0 {
			reader.Shrink()
		}
		if _, err := reader.Peek(max(did.need, reader.Len()+1)); err != nil {
			c.readFailed(readError(err))
			return
		}
		c.heard.Store(c.since(time.Now()))
	}
}

// awaitRoom waits until what waits to be sent was taken away once more. It fails if it
// never will be.
func (c *grpcConn) awaitRoom(turns uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && c.writeErr == nil && c.writing && c.gathering.turns == turns {
		c.swapped.Wait()
	}
	return cmp.Or(c.err, c.writeErr)
}

// receive obeys all whole frames of b.
func (c *grpcConn) receive(b []byte) (did grpcRead, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.gathering.arrived = 0
	for {
		if c.err != nil {
			return did, c.err
		}
		event, used, need, err := c.http2.Next(b[did.used:], c.at(now))
		if err != nil {
			if !c.hasSettings {
				err = fmt.Errorf("the server does not speak HTTP/2: %w", err)
			}
			return did, err
		}
		c.obeyLocked(&event, now, &did)
		did.used += used
		if did.congested || used == 0 && event.Kind == http2.EventNone {
			did.need = need
			return did, nil
		}
	}
}

// obeyLocked does what an event asks for.
func (c *grpcConn) obeyLocked(event *http2.Event, now time.Time, did *grpcRead) {
	switch event.Kind {
	case http2.EventNone, http2.EventPong:
		c.resumeLocked()
		return
	case http2.EventCongested:
		did.congested, did.turns = true, c.gathering.turns
		return
	case http2.EventSettings:
		c.room.Store(int32(c.http2.Room()))
		c.hasSettings = true
		if c.room.Load() > 0 || !c.peer.peer.config.Short {
			c.settleLocked()
		}
		c.resumeLocked()
		did.ended = true
		return
	case http2.EventGoAway:
		c.leaving, did.goes = true, true
		c.room.Store(0)
		if event.Code != http2.NoError {
			c.why = fmt.Errorf("it said %v: %.100q", event.Code, event.Data)
		}
		if event.Code == http2.EnhanceYourCalm && string(event.Data) == http2.TooManyPings {
			c.peer.pingsLess(c.pings)
		}
		return
	}
	call := c.calls[event.Stream]
	if call == nil {
		c.http2.Release(event.Stream)
		return
	}
	if m := call.messages; m != nil {
		c.streamLocked(event, m, now, did)
		return
	}
	ended, err := c.takeLocked(event, call, now)
	if !ended && err == nil {
		return
	}
	c.answered.Store(c.since(now))
	c.silent.Store(0)
	call.request.heard(len(call.request.grpc.reply.body), time.Duration(c.since(now)-c.heard.Load()))
	did.ended = true
	c.gathering.arrived++
	did.last = c.removeLocked(call, now)
	call.outcome <- muxOutcome{err: err, expired: event.Kind == http2.EventReset && isDue(event, call, now)}
}

// streamLocked does what an event asks for that is a stream's of messages.
func (c *grpcConn) streamLocked(event *http2.Event, m *clientMessages, now time.Time, did *grpcRead) {
	c.answered.Store(c.since(now))
	c.silent.Store(0)
	if event.Kind == http2.EventData {
		c.gathering.arrived++
	}
	if event.Kind == http2.EventReset && isDue(event, m.call, now) {
		m.call.finish(muxOutcome{expired: true})
	} else if !m.obeyLocked(event) {
		return
	}
	did.ended = true
	did.last = c.removeLocked(m.call, now)
}

// isDue reports whether the server gave a call up because its time is over: servers know
// the deadline, and may say CANCEL before the timer of the client has run.
func isDue(event *http2.Event, call *muxCall, now time.Time) bool {
	return event.Code == http2.Cancel && event.Problem == nil && !call.deadline.IsZero() && !call.deadline.After(now)
}

// takeLocked takes what has come for a call. It returns whether that was the last, or why
// the call has failed.
func (c *grpcConn) takeLocked(event *http2.Event, call *muxCall, now time.Time) (ended bool, err error) {
	request := call.request
	reply := &request.grpc.reply
	switch {
	case event.Kind == http2.EventReset:
		return true, resetError(event, reply.answered)
	case event.Interim:
		return false, nil
	case event.Kind == http2.EventHeaders:
		err = reply.headers(event)
	default:
		err = reply.data(event.Data, request, c.peer.peer.config.Limits.Bytes, c.lent.pool.buffers)
		c.http2.Consume(event.Stream, len(event.Data), c.at(now))
	}
	if err != nil {
		return true, &CallError{Phase: PhaseReply, Sent: true, Err: err}
	}
	return event.End, nil
}

// resetError returns why a call failed whose stream has ended before its time.
func resetError(event *http2.Event, answered bool) error {
	failed := &CallError{Phase: PhaseWait, Sent: !event.NotExecuted}
	if answered {
		failed.Phase = PhaseReply
	}
	switch {
	case event.NotExecuted:
		failed.Err = &grpc.Error{Code: grpc.Unavailable, Detail: "the server did not look at the call"}
	case event.Problem != nil:
		failed.Err = &grpc.Error{Code: grpc.Internal, Detail: event.Problem.Error()}
	default:
		failed.Err = &grpc.Error{Code: grpc.CodeOfReset(uint32(event.Code)), Detail: fmt.Sprintf("the server reset the stream: %v", event.Code)}
	}
	return failed
}

// broken ends the connection for what was wrong on it.
func (c *grpcConn) broken(err error) {
	var problem *http2.Error
	if errors.As(err, &problem) {
		err = &grpc.Error{Code: grpc.Internal, Detail: err.Error()}
	}
	c.fail(err)
}

// readFailed ends the connection when nothing can be read any more.
func (c *grpcConn) readFailed(err error) {
	c.mu.Lock()
	if handshake := new(eventloop.HandshakeError); c.writeErr != nil && !errors.As(err, &handshake) {
		err = c.writeErr
	}
	c.mu.Unlock()
	c.fail(err)
}
