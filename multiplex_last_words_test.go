package fulmar_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// deafened is a connection of a client on which nothing can be written any more
// from some time on, while what its peer has sent still arrives: what a client
// sees that writes to a peer which has closed before it read everything.
type deafened struct {
	net.Conn
	// stuck: writes wait for broken and fail then, in the middle of a call.
	stuck  atomic.Bool
	broken chan struct{}
}

func (c *deafened) Write(p []byte) (int, error) {
	if !c.stuck.Load() {
		return c.Conn.Write(p)
	}
	<-c.broken
	return 10, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

// lastWords is a peer that answers the first call, and of lastCalls more on its
// first connection as many as answers says. Then it reads and writes nothing.
type lastWords struct {
	t       *testing.T
	answers int
	opened  atomic.Int64
	end     chan struct{}
}

const lastCalls = 4

func (p *lastWords) serve(conn net.Conn) {
	first := p.opened.Add(1) == 1
	for i := 0; !first || i <= lastCalls; i++ {
		call, err := nextHeaded(conn)
		if err != nil {
			return
		}
		if !first || i <= p.answers {
			answerAdd(p.t, conn, call)
		}
	}
	<-p.end
}

// TestMultiplex_LastWordsArrive: when nothing can be written any more, replies
// that the peer has sent before still get to their calls. The other calls end
// soon: those that were sent may have been executed, the one that was written in
// part and those behind it go over another connection.
func TestMultiplex_LastWordsArrive(t *testing.T) {
	const delay, lateCalls = time.Millisecond, 5
	for answers := range lastCalls + 1 {
		peer := &lastWords{t: t, answers: answers}
		var doomed *deafened
		wrap := func(conn net.Conn) net.Conn {
			if doomed != nil {
				return conn
			}
			doomed = &deafened{Conn: conn, broken: make(chan struct{})}
			return doomed
		}
		withFake(t, simnet.Config{Delay: delay}, fulmar.ClientConfig{Timeout: time.Minute}, peer.serve, func(client *fulmar.Client) {
			peer.end = make(chan struct{})
			defer close(peer.end)
			add := func() (int32, error) {
				return testservice.NewEchoClient(client).Add(context.Background(), 1, 2)
			}
			if _, err := add(); err != nil {
				t.Fatal(err)
			}
			var answered, lost atomic.Int64
			sent := call(lastCalls, func(int) {
				sum, err := add()
				if err == nil && sum == 3 {
					answered.Add(1)
					return
				}
				if e := asError(t, err); e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedMaybe || !errors.Is(e, syscall.EPIPE) {
					t.Errorf("a call that was sent: %d, %v: code %v, %v", sum, e, e.Code(), e.Executed())
				}
				lost.Add(1)
			})
			// The answers are on their way when the next calls are written.
			time.Sleep(delay + delay/2)
			doomed.stuck.Store(true)
			late := call(lateCalls, func(int) {
				if sum, err := add(); sum != 3 || err != nil {
					t.Errorf("a call that could not be written: %d, %v", sum, err)
				}
			})
			synctest.Wait()
			close(doomed.broken)
			start := time.Now()
			synctest.Wait()
			if answered.Load() != 0 || lost.Load() != 0 {
				t.Errorf("%d of %d answers: %d calls were answered and %d lost at once", answers, lastCalls, answered.Load(), lost.Load())
			}
			if sum, err := add(); sum != 3 || err != nil || time.Since(start) >= limits.LastWordsTimeout {
				t.Errorf("a call meanwhile: %d, %v after %v", sum, err, time.Since(start))
			}
			sent.Wait()
			if took := time.Since(start); int(answered.Load()) != answers || took > limits.LastWordsTimeout {
				t.Errorf("%d of %d answers: %d calls were answered and %d lost, after %v", answers, lastCalls, answered.Load(), lost.Load(), took)
			}
			late.Wait()
			if sum, err := add(); sum != 3 || err != nil {
				t.Errorf("a later call: %d, %v", sum, err)
			}
			synctest.Wait() // the connection that broke may still be closing
			if stats := client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 || peer.opened.Load() != 2 {
				t.Errorf("%+v after %d connections", stats, peer.opened.Load())
			}
		}, wrap)
	}
}
