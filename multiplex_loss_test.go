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

// withStalling runs test with a client of a stalling peer whose connection is
// shared and then filled by a call that cannot be written whole.
func withStalling(t *testing.T, then func(conn net.Conn), test func(client *fulmar.Client, long func(context.Context) error, resume func())) {
	t.Helper()
	peer := &stalling{t: t, then: then}
	withFakeOn(t, simnet.Config{BufferBytes: 64 << 10}, fulmar.ClientConfig{Timeout: time.Minute}, peer.serve, func(client *fulmar.Client) {
		peer.resume = make(chan struct{})
		api := testservice.NewEchoClient(client)
		if _, err := api.Add(context.Background(), 1, 2); err != nil {
			t.Fatal(err)
		}
		long := func(ctx context.Context) error {
			_, err := api.Echo(ctx, &testservice.Message{Text: strings.Repeat("x", 200<<10)})
			return err
		}
		resume := sync.OnceFunc(func() { close(peer.resume) })
		defer resume()
		test(client, long, resume)
	})
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
	withStalling(t, then, func(client *fulmar.Client, long func(context.Context) error, resume func()) {
		ctx, cancel := context.WithCancel(context.Background())
		api := testservice.NewEchoClient(client)
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
			withStalling(t, end, func(client *fulmar.Client, long func(context.Context) error, resume func()) {
				api := testservice.NewEchoClient(client)
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
	withStalling(t, silent, func(client *fulmar.Client, _ func(context.Context) error, resume func()) {
		resume()
		api := testservice.NewEchoClient(client)
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
	withStalling(t, func(net.Conn) {}, func(client *fulmar.Client, long func(context.Context) error, _ func()) {
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

// TestMultiplex_ControlMessages: calls that run go on, no call is added, and the
// connection is closed behind the last answer.
func TestMultiplex_ControlMessages(t *testing.T) {
	control := func(t *testing.T) []byte {
		return headed(t, ttheader.Head{Strings: pairs("crrst", "1")}, message(thriftwire.Reply, "none", 0, []byte{0}))
	}
	// Each makes the server leave, while a call waits.
	leaves := map[string]func(t *testing.T, conn net.Conn, call headedMessage){
		"the control message": func(t *testing.T, conn net.Conn, call headedMessage) {
			answerAdd(t, conn, call)
			_, _ = conn.Write(control(t))
		},
		"control messages": func(t *testing.T, conn net.Conn, call headedMessage) {
			_, _ = conn.Write(append(control(t), control(t)...))
			answerAdd(t, conn, call)
		},
		"a key of an answer": func(t *testing.T, conn net.Conn, call headedMessage) {
			_, _ = conn.Write(reply(t, call, sumBody(t, addition(call)), "crrst", "1"))
		},
		"a late answer": func(t *testing.T, conn net.Conn, call headedMessage) {
			answerAdd(t, conn, call)
			call.HeaderSequence += 1000
			_, _ = conn.Write(reply(t, call, sumBody(t, 0), "crrst", "1"))
		},
	}
	for name, leave := range leaves {
		t.Run(name, func(t *testing.T) {
			var connections, closed atomic.Int64
			serve := func(conn net.Conn) {
				number := connections.Add(1)
				for i := 0; ; i++ {
					call, err := nextHeaded(conn)
					switch {
					case err == io.EOF:
						closed.Add(1)
						return
					case err != nil:
						t.Errorf("connection %d ended with %v", number, err)
						return
					case number == 1 && i == 1:
						time.AfterFunc(time.Second, func() { answerAdd(t, conn, call) })
					case number == 1 && i == 2:
						leave(t, conn, call)
					default:
						if number == 1 && i > 2 {
							t.Error("a call came after the server said that it leaves")
						}
						answerAdd(t, conn, call)
					}
				}
			}
			withFake(t, fulmar.ClientConfig{}, serve, func(client *fulmar.Client) {
				api := testservice.NewEchoClient(client)
				add := func() {
					if sum, err := api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
						t.Errorf("Add = %d, %v", sum, err)
					}
				}
				add()
				waiting := call(1, func(int) { add() })
				synctest.Wait()
				add()
				synctest.Wait()
				for range 3 {
					add()
				}
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
