package fulmar_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// stalling is a peer that shares a connection, answers its first call and then
// reads nothing until told.
type stalling struct {
	t      *testing.T
	resume chan struct{}
	// then plays the rest, on the first connection.
	then   func(conn net.Conn)
	opened atomic.Int64
}

func (p *stalling) serve(conn net.Conn) {
	first := p.opened.Add(1) == 1
	for {
		call, err := nextHeaded(conn)
		if err != nil {
			return
		}
		if string(call.Name) == "echo" {
			_, _ = conn.Write(reply(p.t, call, body(p.t, &testservice.EchoEchoResult{Success: &testservice.Message{}})))
			continue
		}
		answerAdd(p.t, conn, call)
		if first {
			<-p.resume
			p.then(conn)
			return
		}
	}
}

// narrow is a network in which a long call does not fit.
var narrow = simnet.Config{BufferBytes: 64 << 10}

// begin shares a connection of client with the peer, which then reads nothing
// until resume. long is a call that cannot be written whole meanwhile.
func (p *stalling) begin(client *fulmar.Client) (api testservice.EchoClient, long func(context.Context) error, resume func()) {
	p.resume = make(chan struct{})
	api = testservice.NewEchoClient(client)
	if _, err := api.Add(context.Background(), 1, 2); err != nil {
		p.t.Error(err)
	}
	long = func(ctx context.Context) error {
		_, err := api.Echo(ctx, &testservice.Message{Text: strings.Repeat("x", 200<<10)})
		return err
	}
	return api, long, sync.OnceFunc(func() { close(p.resume) })
}

// TestMultiplex_SaysWhetherACancelledCallWasSent: one of which not a byte was
// written was not executed, and is not written afterwards; one that was begun may
// have been, and is written to its end.
func TestMultiplex_SaysWhetherACancelledCallWasSent(t *testing.T) {
	var arrived []string
	then := func(conn net.Conn) {
		for {
			call, err := nextHeaded(conn)
			if err != nil {
				return
			}
			arrived = append(arrived, string(call.Name))
			if string(call.Name) == "add" {
				answerAdd(t, conn, call)
			}
		}
	}
	peer := &stalling{t: t, then: then}
	withFake(t, narrow, fulmar.ClientConfig{Timeout: time.Minute}, peer.serve, func(client *fulmar.Client) {
		api, long, resume := peer.begin(client)
		defer resume()
		ctx, cancel := context.WithCancel(context.Background())
		begun := call(1, func(int) {
			if e := asError(t, long(ctx)); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedMaybe || e.Phase() != fulmar.PhaseWait {
				t.Errorf("a call that was begun: %v: %v, phase %v", e, e.Executed(), e.Phase())
			}
		})
		synctest.Wait()
		waiting := call(10, func(i int) {
			err := api.Nothing(ctx)
			if i%2 == 0 {
				err = api.Notify(ctx, "x")
			}
			if e := asError(t, err); e.Code() != fulmar.Canceled || e.Executed() != fulmar.ExecutedNo {
				t.Errorf("a call that waited: %v: %v, phase %v", e, e.Executed(), e.Phase())
			}
		})
		synctest.Wait()
		cancel()
		begun.Wait()
		waiting.Wait()
		resume()
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("Add on the same connection = %d, %v", sum, err)
		}
		if stats := client.Stats(); stats.Connections != 1 {
			t.Errorf("%+v", stats)
		}
	})
	if len(arrived) != 2 || arrived[0] != "echo" || arrived[1] != "add" {
		t.Errorf("the calls %v were written, want echo and add", arrived)
	}
}

// TestMultiplex_LostConnections: each call on it ends once. Those that were sent
// may have been executed; those that were not go over another connection.
func TestMultiplex_LostConnections(t *testing.T) {
	const calls = 50
	ends := map[string]func(conn net.Conn){
		"closed":      func(conn net.Conn) { _ = conn.Close() },
		"half closed": func(conn net.Conn) { _ = conn.(interface{ CloseWrite() error }).CloseWrite(); time.Sleep(time.Second) },
		"garbage":     func(conn net.Conn) { _, _ = conn.Write([]byte("garbage!")); time.Sleep(time.Second) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			peer := &stalling{t: t, then: end}
			withFake(t, narrow, fulmar.ClientConfig{Timeout: time.Minute}, peer.serve, func(client *fulmar.Client) {
				api, long, resume := peer.begin(client)
				defer resume()
				var sent, moved atomic.Int64
				before := call(calls, func(int) {
					err := api.Nothing(context.Background())
					if e := asError(t, err); e.Executed() != fulmar.ExecutedMaybe || e.Code() != fulmar.Unavailable && e.Code() != fulmar.Internal {
						t.Errorf("a call that was sent: %v: %v", e, e.Executed())
					}
					sent.Add(1)
				})
				synctest.Wait()
				begun := call(1, func(int) {
					// A server that has a part of a call cannot execute it. Whether the
					// client knows that depends on who notices the end first.
					if err := long(context.Background()); err != nil && asError(t, err).Executed() == fulmar.ExecutedYes {
						t.Errorf("a call that was begun: %v", err)
					}
				})
				synctest.Wait()
				after := call(calls/5, func(i int) {
					if sum, err := api.Add(context.Background(), int32(i), 1); sum != int32(i)+1 || err != nil {
						t.Errorf("a call that was not sent: %d, %v", sum, err)
					}
					moved.Add(1)
				})
				synctest.Wait()
				if sent.Load() != 0 || moved.Load() != 0 {
					t.Errorf("%d and %d calls have ended", sent.Load(), moved.Load())
				}
				resume()
				before.Wait()
				begun.Wait()
				after.Wait()
			})
		})
	}
}

// TestMultiplex_ASilentPeerIsLeft: what waits ends at its deadline, and the next
// calls do not wait behind it.
func TestMultiplex_ASilentPeerIsLeft(t *testing.T) {
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	peer := &stalling{t: t, then: silent}
	withFake(t, narrow, fulmar.ClientConfig{Timeout: time.Minute}, peer.serve, func(client *fulmar.Client) {
		api, _, resume := peer.begin(client)
		resume()
		time.Sleep(time.Millisecond)
		start := time.Now()
		call(20, func(int) {
			if e := asError(t, api.Nothing(context.Background(), fulmar.Timeout(time.Second))); e.Code() != fulmar.DeadlineExceeded || e.Executed() != fulmar.ExecutedMaybe {
				t.Errorf("a call: %v", e)
			}
		}).Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("they ended after %v", took)
		}
		if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil || time.Since(start) != time.Second {
			t.Errorf("the next call: %d, %v after %v", sum, err, time.Since(start))
		}
		if stats := client.Stats(); stats.Connections != 1 || stats.Multiplexed != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

// TestMultiplex_APeerThatReadsNothingHoldsNoMemory: calls that gave up leave
// nothing behind, although nothing can be written for as long as a peer may
// stall.
func TestMultiplex_APeerThatReadsNothingHoldsNoMemory(t *testing.T) {
	peer := &stalling{t: t, then: func(net.Conn) {}}
	withFake(t, narrow, fulmar.ClientConfig{Timeout: time.Minute}, peer.serve, func(client *fulmar.Client) {
		_, long, resume := peer.begin(client)
		defer resume()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		filled := call(1, func(int) { _ = long(ctx) })
		synctest.Wait()
		const calls, most = 500, 4 << 20
		used := heapGrowth(func() {
			for range calls {
				ctx, cancel := context.WithCancel(context.Background())
				all := call(1, func(int) {
					if e := asError(t, long(ctx)); e.Executed() != fulmar.ExecutedNo {
						t.Errorf("a call that waited: %v", e)
					}
				})
				synctest.Wait()
				cancel()
				all.Wait()
			}
		})
		if used > most {
			t.Errorf("%d calls of 200 KiB that gave up hold %d bytes", calls, used)
		}
		cancel()
		filled.Wait()
	})
}

// leaving are the ways in which a server says that it closes the connection. Each
// answers a call as well.
func leaving(t *testing.T) map[string]func(conn net.Conn, call headedMessage) {
	control := headed(t, ttheader.Head{Strings: pairs("crrst", "1")}, message(thriftwire.Reply, "none", 0, []byte{0}))
	return map[string]func(conn net.Conn, call headedMessage){
		"the control message": func(conn net.Conn, call headedMessage) {
			answerAdd(t, conn, call)
			_, _ = conn.Write(control)
		},
		"control messages": func(conn net.Conn, call headedMessage) {
			_, _ = conn.Write(append(control, control...))
			answerAdd(t, conn, call)
		},
		"a key of an answer": func(conn net.Conn, call headedMessage) {
			_, _ = conn.Write(reply(t, call, sumBody(t, addition(call)), "crrst", "1"))
		},
		"a late answer": func(conn net.Conn, call headedMessage) {
			answerAdd(t, conn, call)
			call.HeaderSequence += 1000
			_, _ = conn.Write(reply(t, call, sumBody(t, 0), "crrst", "1"))
		},
	}
}

// TestMultiplex_ServersThatLeave: calls that run go on, no call is added, and the
// connection is closed behind the last answer.
func TestMultiplex_ServersThatLeave(t *testing.T) {
	for name, leave := range leaving(t) {
		t.Run(name, func(t *testing.T) {
			var connections, closed atomic.Int64
			serve := func(conn net.Conn) {
				number := connections.Add(1)
				for i := 0; ; i++ {
					call, err := nextHeaded(conn)
					switch {
					case err != nil:
						closed.Add(1)
						if err != io.EOF {
							t.Errorf("connection %d ended with %v", number, err)
						}
						return
					case number == 1 && i == 1:
						time.AfterFunc(time.Second, func() { answerAdd(t, conn, call) })
					case number == 1 && i == 2:
						leave(conn, call)
					case number == 1 && i > 2:
						t.Error("a call came after the server said that it leaves")
					default:
						answerAdd(t, conn, call)
					}
				}
			}
			withFake(t, simnet.Config{}, fulmar.ClientConfig{}, serve, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				add := func(int) {
					if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
						t.Errorf("Add = %d, %v", sum, err)
					}
				}
				add(0)
				waiting := call(1, add)
				synctest.Wait()
				add(0)
				synctest.Wait()
				add(0)
				add(0)
				if n := closed.Load(); n != 0 {
					t.Errorf("%d connections were closed while a call waited", n)
				}
				waiting.Wait()
				synctest.Wait()
				if stats := client.Stats(); closed.Load() != 1 || connections.Load() != 2 || stats.Connections != 1 {
					t.Errorf("%d of %d connections were closed; %+v", closed.Load(), connections.Load(), stats)
				}
			})
		})
	}
}
