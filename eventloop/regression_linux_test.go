package eventloop_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// These are the classes of mistakes that event loops are known for. Each test
// says which version of the engine it fails on.

// onDispatches runs a test with handlers on pollers and beside them.
func onDispatches(t *testing.T, test func(t *testing.T, config eventloop.Config)) {
	for name, dispatch := range map[string]eventloop.Dispatch{
		"spawn": eventloop.DispatchSpawn, "inline": eventloop.DispatchInline, "auto": eventloop.DispatchAuto,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: dispatch})
		})
	}
}

// TestStale_BytesNeverCrossConnections: clients come and go, so that descriptors
// and slots are used again and again, while goroutines that were left behind
// write to connections that were closed. Each byte that a client gets must be
// its own number. The naive version closes the descriptor under those who use it.
func TestStale_BytesNeverCrossConnections(t *testing.T) {
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		var late sync.WaitGroup
		s := serve(t, config, func(conn *eventloop.Conn) error {
			frame, err := conn.Reader().Next(8)
			if err != nil {
				return err
			}
			frame = bytes.Repeat(frame, 4)
			late.Go(func() {
				for {
					if _, err := conn.Write(frame); err != nil {
						return
					}
				}
			})
			_, err = conn.Write(frame)
			if frame[7]%2 == 0 {
				late.Go(func() { conn.Close() })
			}
			return err
		})
		var clients sync.WaitGroup
		rounds := 25
		if testing.Short() {
			rounds = 8 // the longer it is, the more writers go round and round, on one processor for seconds
		}
		for worker := range 8 {
			clients.Go(func() {
				for i := range rounds {
					exchangeNumber(t, s, uint64(worker)<<32|uint64(i))
				}
			})
		}
		clients.Wait()
		s.Close()
		s.served <- receive(t, s.served, "the end of Serve") // behind it no handler adds to late
		late.Wait()
	})
}

// exchangeNumber sends a number and reads some of the echoes.
func exchangeNumber(t *testing.T, s *server, number uint64) {
	conn, err := s.dial()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	want := binary.BigEndian.AppendUint64(nil, number)
	if _, err := conn.Write(want); err != nil {
		t.Error(err)
		return
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, 8)
	for i := range 20 {
		if _, err := io.ReadFull(conn, got); err != nil {
			if i == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("client %x: %v", number, err)
			}
			return
		}
		if !bytes.Equal(got, want) {
			t.Errorf("client %x got %x", number, got)
			return
		}
	}
}

// TestClose_RacesWithEverythingOfAServedConnection closes connections in every
// way while every other method is called. Panics and lost ends are what naive
// versions have here.
func TestClose_RacesWithEverythingOfAServedConnection(t *testing.T) {
	ends := map[string]func(*eventloop.Conn){
		"Close":          func(conn *eventloop.Conn) { conn.Close() },
		"CloseWithError": func(conn *eventloop.Conn) { conn.CloseWithError(errors.New("enough")) },
		"Abort":          func(conn *eventloop.Conn) { conn.Abort() },
		"CloseWrite":     func(conn *eventloop.Conn) { conn.CloseWrite(); conn.Close() },
	}
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) { closeUnderFire(t, config, end) })
		}
	})
}

func closeUnderFire(t *testing.T, config eventloop.Config, end func(*eventloop.Conn)) {
	connections := 8
	if testing.Short() {
		connections = 4
	}
	var others sync.WaitGroup
	var closes atomic.Int64
	config.OnClose = func(conn *eventloop.Conn, _ error) {
		if conn.Context().(*atomic.Int64).Add(1) != 1 {
			t.Error("OnClose was called twice")
		}
		closes.Add(1)
	}
	config.OnOpen = func(conn *eventloop.Conn) {
		conn.SetContext(new(atomic.Int64))
		callEverything(&others, conn)
		others.Go(func() {
			for range rand.IntN(20) {
				runtime.Gosched()
			}
			end(conn)
		})
	}
	s := serve(t, config, func(conn *eventloop.Conn) error {
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			return err
		}
		conn.Writer().Append(make([]byte, 1000))
		return nil
	})
	var clients sync.WaitGroup
	for range connections {
		client, err := s.dial()
		if errors.Is(err, syscall.ECONNRESET) {
			continue // it was accepted, and ended at once
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		clients.Go(func() { _, _ = io.Copy(io.Discard, client) })
		clients.Go(func() {
			for {
				if _, err := client.Write(make([]byte, 300)); err != nil {
					return
				}
			}
		})
	}
	for range connections {
		receive(t, s.closed, "OnClose")
	}
	others.Wait()
	clients.Wait()
	if stats := s.Stats(); stats.Panics != 0 || closes.Load() != int64(connections) {
		t.Errorf("%d panics, %d connections closed, want none and %d", stats.Panics, closes.Load(), connections)
	}
}

// callEverything calls what others than the handler may call, until it fails.
func callEverything(others *sync.WaitGroup, conn *eventloop.Conn) {
	piece := make([]byte, 64<<10)
	for _, call := range []func() error{
		func() error { _, err := conn.Write(piece); return err },
		func() error { _, err := conn.WriteBuffers([][]byte{piece[:10], piece}); return err },
		func() error {
			n, err := conn.TryWriteBuffers([][]byte{piece})
			if err == nil && n < int64(len(piece)) {
				_, err = conn.WriteRest([][]byte{piece[n:]}, n)
			}
			return err
		},
		func() error { return conn.SetDeadline(time.Now().Add(time.Hour)) },
		func() error {
			conn.PauseReading()
			conn.ResumeReading()
			conn.Wake()
			return conn.SetReadDeadline(time.Time{})
		},
	} {
		others.Go(func() {
			for call() == nil {
				runtime.Gosched()
			}
		})
	}
}

// TestClose_IsNotLostWhileTheHandlerReturns: the peer closes just when the
// handler returns. The naive version takes the event while the connection is
// owned, and nobody looks again.
func TestClose_IsNotLostWhileTheHandlerReturns(t *testing.T) {
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		connections := 2000
		if testing.Short() {
			connections = 500
		}
		var handled atomic.Int64
		s := serve(t, config, func(conn *eventloop.Conn) error {
			n := conn.Reader().Len()
			for range n % 3 {
				runtime.Gosched()
			}
			handled.Add(int64(n))
			return conn.Reader().Skip(n)
		})
		sent := 0
		for i := range connections {
			client, err := s.dial()
			if err != nil {
				t.Fatal(err)
			}
			send(t, client, "abc"[:1+i%3])
			sent += 1 + i%3
			if i%5 == 0 {
				client.(*net.TCPConn).CloseWrite()
				expectEnd(t, client, "")
			}
			client.Close()
		}
		for range connections {
			if err := receive(t, s.closed, "OnClose"); err != nil {
				t.Fatalf("OnClose got %v", err)
			}
		}
		// A connection counts as open until its OnClose has returned.
		eventually(t, "no open connection", func() bool { return s.Stats().Open == 0 })
		if handled.Load() != int64(sent) || len(s.closed) != 0 {
			t.Errorf("%d of %d bytes were handled, %d were closed twice", handled.Load(), sent, len(s.closed))
		}
	})
}

// TestClose_SentBytesArrive: more is sent than the sockets hold, and closed at
// once. The naive version throws away what is not on its way.
func TestClose_SentBytesArrive(t *testing.T) {
	reply := make([]byte, 4<<20)
	for i := range reply {
		reply[i] = byte(i >> 8)
	}
	last := errors.New("last words")
	handlers := map[string]eventloop.Handler{
		"Write and Close": func(conn *eventloop.Conn) error {
			_ = conn.Reader().Skip(conn.Reader().Len())
			if _, err := conn.Write(reply); err != nil {
				return err
			}
			return conn.Close()
		},
		"Flush and CloseWithError": func(conn *eventloop.Conn) error {
			_ = conn.Reader().Skip(conn.Reader().Len())
			conn.Writer().Insert(reply)
			if err := conn.Writer().Flush(); err != nil {
				return err
			}
			return conn.CloseWithError(last)
		},
		"an error": func(conn *eventloop.Conn) error {
			conn.Writer().Insert(reply)
			return last
		},
	}
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		for name, handler := range handlers {
			t.Run(name, func(t *testing.T) {
				s := serve(t, config, handler)
				for range 3 {
					client := s.connect()
					client.SetReadDeadline(time.Now().Add(patience))
					send(t, client, "x")
					got, err := io.ReadAll(client)
					if err != nil || !bytes.Equal(got, reply) {
						t.Errorf("got %d bytes, %v, want %d and the end", len(got), err, len(reply))
					}
					client.Close()
					if err := receive(t, s.closed, "OnClose"); name == "Write and Close" && err != nil || name != "Write and Close" && !errors.Is(err, last) {
						t.Errorf("OnClose got %v", err)
					}
				}
			})
		}
	})
}

// TestHandler_LeavingBytesDoesNotSpin: what is not read, or not wanted, must not
// keep a poller busy. The naive version is told of it for ever.
func TestHandler_LeavingBytesDoesNotSpin(t *testing.T) {
	cases := map[string]struct {
		handler eventloop.Handler
		sent    int
		closes  bool
	}{
		"consumes nothing":       {func(*eventloop.Conn) error { return nil }, 100, false},
		"wants more":             {func(*eventloop.Conn) error { return eventloop.ErrMore }, 100, false},
		"holds more than it may": {func(*eventloop.Conn) error { return nil }, 200 << 10, false},
		"reads no more":          {func(conn *eventloop.Conn) error { conn.PauseReading(); return nil }, 100, true},
		"is held at the end":     {func(conn *eventloop.Conn) error { conn.Hold(); return nil }, 100, true},
	}
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		config.ReadBufferBytes = 16 << 10
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				var called atomic.Int64
				s := serve(t, config, func(conn *eventloop.Conn) error {
					if conn.Reader().Buffered()[0] == 'e' {
						return echoLines(conn)
					}
					called.Add(1)
					return test.handler(conn)
				})
				other := s.connect()
				send(t, other, "echo\n")
				expect(t, other, "echo\n")
				client := s.connect()
				send(t, client, string(make([]byte, test.sent)))
				eventually(t, "the handler", func() bool { return called.Load() > 0 })
				if test.closes {
					closeWrite(t, client)
				}
				// Now only the other connection has something to say. One that keeps
				// the pollers busy would be seen at each of its turns.
				const turns = 200
				exchange := func() {
					for range turns {
						send(t, other, "echo\n")
						expect(t, other, "echo\n")
					}
				}
				exchange()
				before, calls := s.Stats().Loop, called.Load()
				exchange()
				after := s.Stats().Loop
				if again := called.Load(); again != calls {
					t.Errorf("the handler was called %d times more though nothing happened", again-calls)
				}
				if events := after.Events - before.Events; events > 2*turns {
					t.Errorf("%d events for %d messages, want at most two for each", events, turns)
				}
			})
		}
	})
}

// TestBuffers_WhatAHandlerSeesStays: handlers that wait keep what they look at,
// while the poller goes on with others. The naive version has one buffer for a
// poller, whoever leads.
func TestBuffers_WhatAHandlerSeesStays(t *testing.T) {
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		config.Pollers = 1
		var inside atomic.Int64
		s := serve(t, config, func(conn *eventloop.Conn) error {
			seen := conn.Reader().Buffered()
			was := bytes.Clone(seen)
			if len(seen) < 4 {
				return eventloop.ErrMore // what is left in the buffer is kept as well
			}
			if seen[0] == 'w' {
				// It waits for more, and another goroutine polls. What it looks at
				// is consumed by Read, and stays valid until the handler returns.
				inside.Add(1)
				was = was[:bytes.IndexByte(was, '\n')+1] // "done" may be there already
				seen = seen[:len(was)]
				rest := make([]byte, len(was)+len("done"))
				if _, err := io.ReadFull(conn, rest); err != nil {
					return err
				}
				if !bytes.Equal(rest[:len(was)], was) {
					t.Errorf("Read returned %.20q, buffered was %.20q", rest, was)
				}
			} else if err := conn.Reader().Skip(len(seen)); err != nil {
				return err
			}
			if !bytes.Equal(seen, was) {
				t.Errorf("what the handler looks at changed from %.20q to %.20q", was, seen)
			}
			_, err := conn.Write(was)
			return err
		})
		for round := range 20 {
			waiting := []net.Conn{}
			for i := range 4 {
				client := s.connect()
				send(t, client, fmt.Sprintf("wait %d %d\n", round, i))
				waiting = append(waiting, client)
			}
			// Else what they wait for could arrive before they wait.
			eventually(t, "the handlers", func() bool { return inside.Load() == int64(4*(round+1)) })
			for i := range 10 {
				client := s.connect()
				text := fmt.Sprintf("go on %d %d\n", round, i)
				send(t, client, text[:3])
				send(t, client, text[3:])
				expect(t, client, text)
				client.Close()
			}
			for i, client := range waiting {
				send(t, client, "done")
				expect(t, client, fmt.Sprintf("wait %d %d\n", round, i))
				client.Close()
			}
		}
	})
}

// TestBuffers_AreGivenBack: each handler that waits on a poller keeps its buffer,
// and no more than a few are kept afterwards.
func TestBuffers_AreGivenBack(t *testing.T) {
	const waiting = 32
	release := make(chan struct{})
	var inside atomic.Int64
	s := serve(t, eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: eventloop.DispatchInline, Pollers: 1}, func(conn *eventloop.Conn) error {
		inside.Add(1)
		_, err := conn.Read(make([]byte, 1+conn.Reader().Len())) // one that waits
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		<-release
		return err
	})
	if got := s.Stats().Loop.Buffers; got != 0 {
		t.Errorf("%d buffers before the first connection", got)
	}
	var clients []net.Conn
	for i := range waiting {
		client := s.connect()
		send(t, client, "x")
		eventually(t, "the handler", func() bool { return inside.Load() == int64(i+1) })
		clients = append(clients, client)
	}
	eventually(t, "a buffer for each handler and one for the poller", func() bool { return s.Stats().Loop.Buffers == waiting+1 })
	close(release)
	for _, client := range clients {
		client.Close()
		receive(t, s.closed, "OnClose")
	}
	eventually(t, "the buffers", func() bool { return s.Stats().Loop.Buffers <= 1+limits.PollerBuffers })
	s.stop()
	eventually(t, "the end of all buffers", func() bool { return s.Stats().Loop.Buffers == 0 })
}

// TestClose_OfAConnectionThatIsJustAccepted: the listener ends while it takes
// connections in. The naive version lists a connection before it has an owner,
// and then there are two.
func TestClose_OfAConnectionThatIsJustAccepted(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	onDispatches(t, func(t *testing.T, config eventloop.Config) {
		for round := range rounds {
			var opened, closed atomic.Int64
			config.OnOpen = func(*eventloop.Conn) { opened.Add(1) }
			config.OnClose = func(*eventloop.Conn, error) { closed.Add(1) }
			s := serve(t, config, echoLines)
			var clients sync.WaitGroup
			for range 4 {
				clients.Go(func() {
					for {
						client, err := s.dial()
						if err != nil {
							return
						}
						client.Close()
					}
				})
			}
			eventually(t, "connections", func() bool { return s.Stats().Accepted > uint64(round%10) })
			if round%2 == 0 {
				s.Close()
			} else if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.stop()
			clients.Wait()
			if accepted := int64(s.Stats().Accepted); opened.Load() != accepted || closed.Load() != accepted {
				t.Fatalf("of %d connections %d were opened and %d closed", accepted, opened.Load(), closed.Load())
			}
		}
	})
}

// TestBuffers_OfALeaderThatEndsAreGivenBack: it loses the role in a handler, and
// then OnClose ends its goroutine. The naive version gives a buffer back where the
// role was lost only. Found by TestPrograms, seed 500751.
func TestBuffers_OfALeaderThatEndsAreGivenBack(t *testing.T) {
	config := eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: eventloop.DispatchInline, Pollers: 1, Logger: silence()}
	closed := make(chan struct{}, 1)
	config.OnClose = func(*eventloop.Conn, error) {
		closed <- struct{}{}
		runtime.Goexit()
	}
	listener, err := eventloop.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	inside := make(chan struct{}, 1)
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(context.Background(), func(conn *eventloop.Conn) error {
			inside <- struct{}{}
			_, err := io.ReadFull(conn, make([]byte, 2)) // one that waits, so another polls
			return err
		})
	}()
	for round := range uint64(3) {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		send(t, client, "x")
		receive(t, inside, "the handler")
		eventually(t, "another to poll", func() bool { return listener.Stats().Loop.Released > round })
		client.Close()
		// The goroutine ends after this, and its buffer may come too late for the
		// next round: only at the end it is known how many there should be.
		receive(t, closed, "OnClose")
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if err := receive(t, served, "Serve to return"); err != nil {
		t.Error(err)
	}
	eventually(t, "the end of all buffers", func() bool { return listener.Stats().Loop.Buffers == 0 })
}
