package eventloop_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// onConcurrentEngines runs a test where handlers may wait: not with
// DispatchInline.
func onConcurrentEngines(t *testing.T, test func(t *testing.T, config eventloop.Config)) {
	configs := map[string]eventloop.Config{"std": {Engine: eventloop.EngineStd}}
	if runtime.GOOS == "linux" {
		configs["spawn"] = eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: eventloop.DispatchSpawn}
		configs["auto"] = eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: eventloop.DispatchAuto, Pollers: 1}
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			config.Logger = silence()
			test(t, config)
		})
	}
}

// onEngines runs a test on all engines, in all ways to dispatch.
func onEngines(t *testing.T, test func(t *testing.T, config eventloop.Config)) {
	onConcurrentEngines(t, test)
	if runtime.GOOS != "linux" {
		return
	}
	t.Run("inline", func(t *testing.T) {
		test(t, eventloop.Config{Engine: eventloop.EngineEpoll, Dispatch: eventloop.DispatchInline, Logger: silence()})
	})
}

// serveDetached serves lines, each with a call that lets go of its connection.
// What work returns is the reply.
func serveDetached(t *testing.T, config eventloop.Config, work func(line string) (string, error)) *server {
	t.Helper()
	s := serve(t, config, func(conn *eventloop.Conn) error {
		line, err := conn.Reader().Until('\n')
		if err != nil {
			return err
		}
		call := conn.Detach()
		reply, err := work(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return err
		}
		if call.Attach() {
			conn.Writer().AppendString(reply + "\n")
			return nil
		}
		_, err = conn.WriteBuffers([][]byte{[]byte(reply + "\n")})
		return err
	})
	inlineIfAuto(s, config)
	return s
}

// expectLines reads lines that may come in any order.
func expectLines(t *testing.T, conn net.Conn, want ...string) {
	t.Helper()
	got := make([]byte, len(strings.Join(want, "")))
	conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.ReadFull(conn, got); err != nil {
		t.Fatalf("read %q, %v, want %q", got[:n], err, want)
	}
	lines := slices.Sorted(strings.Lines(string(got)))
	if slices.Sort(want); !slices.Equal(lines, want) {
		t.Errorf("read %q, want %q", lines, want)
	}
}

// TestDetach_ACallThatWaitsHoldsNobodyUp: a connection goes on without it, whether
// the other request was there before the call or comes later.
func TestDetach_ACallThatWaitsHoldsNobodyUp(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		entered, release := make(chan string, 10), make(chan struct{})
		s := serveDetached(t, config, func(line string) (string, error) {
			if strings.HasPrefix(line, "wait") {
				entered <- line
				<-release
			}
			return line, nil
		})
		client := s.connect()
		send(t, client, "one\nwait\ntwo\n")
		expectLines(t, client, "one\n", "two\n")
		send(t, client, "three\n")
		expect(t, client, "three\n")
		send(t, client, "wait more\nfour\n")
		expect(t, client, "four\n")
		send(t, client, "five\nwait for long\n")
		expect(t, client, "five\n")
		receive(t, entered, "the first call")
		receive(t, entered, "the third call")
		release <- struct{}{}
		receive(t, entered, "the second call")
		release <- struct{}{}
		release <- struct{}{}
		expectLines(t, client, "wait\n", "wait more\n", "wait for long\n")
	})
}

// TestDetach_RepliesBeforeItLeave: those that wait in the Writer for the handler to
// return.
func TestDetach_RepliesBeforeItLeave(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		release := make(chan struct{})
		s := serve(t, config, func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			if string(line) == "wait\n" {
				conn.Detach()
				<-release
				return nil
			}
			conn.Writer().Append(line)
			return nil
		})
		inlineIfAuto(s, config)
		client := s.connect()
		send(t, client, "one\nwait\n")
		expect(t, client, "one\n")
		release <- struct{}{}
	})
}

// TestDetach_CallsOfOneConnectionUseAllProcessors: handlers that compute until
// another one computes too. With one at a time none of them ends.
func TestDetach_CallsOfOneConnectionUseAllProcessors(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor runs one at a time")
	}
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		var running, together atomic.Int64
		s := serveDetached(t, config, func(line string) (string, error) {
			running.Add(1)
			defer running.Add(-1)
			for spins := 0; spins < 1e9 && together.Load() == 0; spins++ {
				if running.Load() > 1 {
					together.Add(1)
				}
			}
			return line, nil
		})
		client := s.connect()
		send(t, client, strings.Repeat("compute\n", 8))
		expect(t, client, strings.Repeat("compute\n", 8))
		if together.Load() == 0 {
			t.Error("no two calls ran at the same time")
		}
	})
}

// TestDetach_HowCallsEnd: errors and panics close the connection, with the reason
// for OnClose, also when it has gone on without the call.
func TestDetach_HowCallsEnd(t *testing.T) {
	for name, end := range map[string]func() error{
		"error":   func() error { return errors.New("the end of it") },
		"ErrMore": func() error { return eventloop.ErrMore },
		"panic":   func() error { panic("the end of it") },
	} {
		t.Run(name, func(t *testing.T) {
			onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
				release := make(chan struct{})
				s := serveDetached(t, config, func(line string) (string, error) {
					switch line {
					case "wait":
						<-release
						return "", end()
					case "end":
						return "", end()
					}
					return line, nil
				})
				client := s.connect()
				send(t, client, "wait\none\n")
				expect(t, client, "one\n")
				release <- struct{}{}
				expectEnd(t, client, "")
				client.Close() // the server listens for a while
				if err := receive(t, s.closed, "OnClose"); err == nil {
					t.Error("OnClose got no error from a call that was left behind")
				}
				if name == "ErrMore" {
					return // from a call that has taken its connection back, that is not an end
				}
				client = s.connect()
				send(t, client, "end\n")
				expectEnd(t, client, "")
				client.Close() // the server listens for a while
				if err := receive(t, s.closed, "OnClose"); err == nil {
					t.Error("OnClose got no error")
				}
			})
		})
	}
}

// TestDetach_CallsThatEndTheirGoroutine: the connection goes on without them.
func TestDetach_CallsThatEndTheirGoroutine(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		release := make(chan struct{})
		s := serveDetached(t, config, func(line string) (string, error) {
			switch line {
			case "wait":
				<-release
				runtime.Goexit()
			case "end":
				runtime.Goexit()
			}
			return line, nil
		})
		client := s.connect()
		send(t, client, "end\none\n")
		expect(t, client, "one\n")
		send(t, client, "wait\ntwo\n")
		expect(t, client, "two\n")
		release <- struct{}{}
		send(t, client, "three\n")
		expect(t, client, "three\n")
		closeWrite(t, client)
		expectEnd(t, client, "")
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestDetach_HoldsTheConnection: the peer stops sending, the server shuts down, and
// the reply of a call that was left behind arrives all the same.
func TestDetach_HoldsTheConnection(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		release, ended := make(chan struct{}), make(chan struct{}, 1)
		config.OnEOF = func(*eventloop.Conn) { ended <- struct{}{} }
		s := serveDetached(t, config, func(line string) (string, error) {
			if line == "wait" {
				<-release
			}
			return line, nil
		})
		client := s.connect()
		send(t, client, "wait\none\n")
		expect(t, client, "one\n")
		closeWrite(t, client)
		receive(t, ended, "OnEOF while a call runs")
		shut := make(chan error, 1)
		go func() { shut <- s.Shutdown(t.Context()) }()
		release <- struct{}{}
		expectEnd(t, client, "wait\n")
		if err := receive(t, shut, "Shutdown"); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
	})
}

// TestDetach_CloseWhileACallRuns: its reply fails, and nothing else does.
func TestDetach_CloseWhileACallRuns(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		release, wrote := make(chan struct{}), make(chan error, 1)
		s := serve(t, config, func(conn *eventloop.Conn) error {
			line, err := conn.Reader().Until('\n')
			if err != nil {
				return err
			}
			call := conn.Detach()
			if string(line) == "wait\n" {
				<-release
				if call.Attach() {
					t.Error("a closed connection can be taken back")
				}
				_, err := conn.WriteBuffers([][]byte{line})
				wrote <- err
				return err
			}
			return conn.Close()
		})
		inlineIfAuto(s, config)
		client := s.connect()
		send(t, client, "wait\nclose\n")
		if err := receive(t, s.closed, "OnClose"); err != nil {
			t.Errorf("OnClose got %v", err)
		}
		release <- struct{}{}
		if err := receive(t, wrote, "the reply"); err == nil {
			t.Error("a reply to a closed connection succeeds")
		}
	})
}

// TestDetach_OutsideOfHandlers: it does nothing there.
func TestDetach_OutsideOfHandlers(t *testing.T) {
	opened := make(chan *eventloop.Conn, 1)
	s := serve(t, eventloop.Config{OnOpen: func(conn *eventloop.Conn) {
		if !conn.Detach().Attach() {
			t.Error("a connection cannot be taken back in OnOpen")
		}
		opened <- conn
	}}, echoLines)
	client := s.connect()
	conn := receive(t, opened, "OnOpen")
	if !conn.Detach().Attach() {
		t.Error("a connection cannot be taken back outside of a handler")
	}
	conn.Wake() // orders that before the handler, which the race detector does not see of bytes
	send(t, client, "echo\n")
	expect(t, client, "echo\n")
	dialled := eventloop.NewConn(s.connect(), eventloop.Config{})
	if !dialled.Detach().Attach() {
		t.Error("a dialled connection cannot be taken back")
	}
}

// TestDetach_WakeCallsTheHandler although a call goes on.
func TestDetach_WakeCallsTheHandler(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		conns, release, woken := make(chan *eventloop.Conn, 1), make(chan struct{}), make(chan struct{}, 1)
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if conn.Reader().Len() == 0 {
				woken <- struct{}{}
				return nil
			}
			if err := conn.Reader().Skip(conn.Reader().Len()); err != nil {
				return err
			}
			conn.Detach()
			conns <- conn
			<-release
			return nil
		})
		inlineIfAuto(s, config)
		send(t, s.connect(), "wait")
		receive(t, conns, "the call").Wake()
		receive(t, woken, "the handler")
		release <- struct{}{}
	})
}

// TestDetach_EveryRequestGetsItsOwnReply: clients send many requests at once, whose
// calls wait for each other, yield, let go of their connection or do not, and
// whose memory must stay theirs.
func TestDetach_EveryRequestGetsItsOwnReply(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		pairs := make(chan struct{})
		s := serve(t, config, func(conn *eventloop.Conn) error { return answerFrame(conn, pairs) })
		stop := make(chan struct{})
		var helper, clients sync.WaitGroup
		helper.Go(func() { // lets calls go on that wait
			for {
				select {
				case <-pairs:
				case <-stop:
					return
				}
			}
		})
		for i := range uint64(6) {
			clients.Go(func() {
				conn, err := s.dial()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				for round := range 20 {
					if round%5 == 0 {
						inlineIfAuto(s, config)
					}
					if err := frames(conn, rand.New(rand.NewPCG(i, uint64(round)))); err != nil {
						t.Errorf("client %d, round %d: %v", i, round, err)
						return
					}
				}
			})
		}
		clients.Wait()
		close(stop)
		helper.Wait()
	})
}

// What a call does, the first byte of a frame behind its length.
const (
	frameReply  = iota // in the handler
	frameDetach        // lets go, and takes back if it can
	frameYield
	frameWait   // for another goroutine
	frameCopies // its request, and yields
	frameWrites // lets go, and writes without looking back
	frameKinds
)

func answerFrame(conn *eventloop.Conn, pairs chan<- struct{}) error {
	head, err := conn.Reader().Peek(2)
	if err != nil {
		return err
	}
	frame, err := conn.Reader().Next(int(binary.BigEndian.Uint16(head)))
	if err != nil {
		return err
	}
	kind := frame[2]
	if kind == frameReply {
		conn.Writer().Append(frame)
		return nil
	}
	if kind == frameCopies {
		frame = bytes.Clone(frame)
		conn.Reader().Done()
	}
	call := conn.Detach()
	switch kind {
	case frameYield, frameCopies:
		for range frame[3] {
			runtime.Gosched()
		}
	case frameWait:
		pairs <- struct{}{}
	}
	if kind != frameWrites && call.Attach() {
		conn.Writer().Append(frame)
		return nil
	}
	_, err = conn.WriteBuffers([][]byte{frame[:2], frame[2:]})
	return err
}

// frames sends some at once and checks that each comes back once, in any order.
func frames(conn net.Conn, random *rand.Rand) error {
	want := map[string]int{}
	var all []byte
	for number := range 1 + random.Uint64N(60) {
		size := 12 + random.IntN(200)
		if random.IntN(20) == 0 {
			size += random.IntN(40_000)
		}
		frame := binary.BigEndian.AppendUint16(nil, uint16(size))
		frame = append(frame, byte(random.IntN(frameKinds)), byte(random.IntN(8)))
		frame = binary.BigEndian.AppendUint64(frame, number)
		frame = append(frame, bytes.Repeat([]byte{byte(number)}, size-len(frame))...)
		want[string(frame)]++
		all = append(all, frame...)
	}
	sent := make(chan error, 1)
	go func() { _, err := conn.Write(all); sent <- err }()
	for len(want) > 0 {
		head := make([]byte, 2)
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		frame := append(head, make([]byte, max(0, int(binary.BigEndian.Uint16(head))-2))...)
		if _, err := io.ReadFull(conn, frame[2:]); err != nil {
			return err
		}
		if want[string(frame)] == 0 {
			return fmt.Errorf("a reply of %d bytes that begins with %x belongs to no request", len(frame), frame[:min(16, len(frame))])
		}
		if want[string(frame)]--; want[string(frame)] == 0 {
			delete(want, string(frame))
		}
	}
	return <-sent
}

// TestDetach_AFailingCallLosesNoReplies: a call that was left fails, while another
// has replied and more requests are there, so that its reply has not left yet.
func TestDetach_AFailingCallLosesNoReplies(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		// Whether the failure is noted before the other call has returned is for the
		// scheduler to say.
		for range 20 {
			fail, fails := make(chan struct{}), make(chan struct{})
			s := serve(t, config, func(conn *eventloop.Conn) error {
				request, err := conn.Reader().Next(1)
				if err != nil {
					return err
				}
				switch request[0] {
				case 'a':
					conn.Detach()
					<-fail
					close(fails)
					return errors.New("on purpose")
				case 'b':
					conn.Writer().AppendString("B")
					close(fail)
					<-fails
					for range 100 {
						runtime.Gosched()
					}
				}
				return nil
			})
			client := s.connect()
			send(t, client, "abc")
			expectEnd(t, client, "B")
			client.Close()
			receive(t, s.closed, "OnClose")
			s.stop()
		}
	})
}
