package eventloop_test

import (
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

func TestHandler_PanicAndGoexitEndOneConnection(t *testing.T) {
	logged := new(recorder)
	misbehave := func(how string) {
		switch how {
		case "panic":
			panic("on purpose")
		case "nil map":
			var m map[string]int
			//lint:ignore SA5000 the panic of the runtime is wanted
			m["x"]++
		case "goexit":
			runtime.Goexit()
		}
	}
	hooks := eventloop.Config{
		Logger:  logged.logger(),
		OnClose: func(conn *eventloop.Conn, _ error) { misbehave(conn.Context().(string)) },
		OnOpen:  func(conn *eventloop.Conn) { conn.SetContext("") },
	}
	s := serve(t, hooks, func(conn *eventloop.Conn) error {
		line, err := conn.Reader().Until('\n')
		if err != nil {
			return err
		}
		how := strings.TrimSpace(string(line))
		conn.Writer().AppendString("done\n")
		misbehave(how)
		if onClose, ok := strings.CutPrefix(how, "close:"); ok {
			conn.SetContext(onClose)
			conn.Close()
		}
		return nil
	})
	bystander := s.connect()
	for _, how := range []string{"panic", "nil map", "goexit", "close:panic", "close:goexit"} {
		t.Run(how, func(t *testing.T) {
			client := s.connect()
			send(t, client, how+"\n")
			expectEnd(t, client, "")
			client.Close()
			if !strings.HasPrefix(how, "close:") {
				err := receive(t, s.closed, "OnClose")
				if err == nil || !strings.Contains(err.Error(), "eventloop: handler") {
					t.Errorf("OnClose got %v", err)
				}
			}
		})
	}
	send(t, bystander, "fine\n")
	expect(t, bystander, "done\n")
	for _, text := range []string{"handler panicked: on purpose", "handler ended its goroutine", "OnClose panicked", "panic_test.go"} {
		eventually(t, "a log with "+text, func() bool { return strings.Contains(logged.String(), text) })
	}
}

// TestHandler_PanicCostsOneReply: the replies of a batch wait for its end, and
// must not be lost when a later call fails.
func TestHandler_PanicCostsOneReply(t *testing.T) {
	for name, fail := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, eventloop.Config{Logger: silence()}, func(conn *eventloop.Conn) error {
				if string(conn.Reader().Buffered()) == "bad\n" {
					conn.Writer().AppendString("half a rep")
					fail()
				}
				return echoLines(conn)
			})
			client := s.connect()
			send(t, client, "one\ntwo\nbad\n")
			expectEnd(t, client, "one\ntwo\n")
		})
	}
}

func TestOnOpen_FailuresCloseTheConnection(t *testing.T) {
	for name, fail := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, eventloop.Config{Logger: silence(), OnOpen: func(*eventloop.Conn) { fail() }}, echoLines)
			client := s.connect()
			expectEnd(t, client, "")
			client.Close()
			if err := receive(t, s.closed, "OnClose"); err == nil {
				t.Error("OnClose got no error")
			}
		})
	}
}

// TestHandler_PanicsLeakNothing is the 10,000 of scenario S18; TestMain looks
// for what is left. It also checks that the log stays bounded.
func TestHandler_PanicsLeakNothing(t *testing.T) {
	logged := new(recorder)
	s := serveSim(t, simnet.New(simnet.Config{}), eventloop.Config{Logger: logged.logger()}, func(conn *eventloop.Conn) error {
		conn.Writer().AppendString("reply")
		if conn.Reader().Buffered()[0] == 'p' {
			panic("on purpose")
		}
		runtime.Goexit()
		return nil
	})
	begin := time.Now()
	for i := range 10000 {
		client, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		client.Write([]byte{"pg"[i%2]})
		closeWrite(t, client) // nobody has to linger
		if err := receive(t, s.closed, "OnClose"); err == nil {
			t.Fatal("OnClose got no error")
		}
		client.Close()
	}
	seconds := int(time.Since(begin)/time.Second) + 1
	if lines := strings.Count(logged.String(), "level=ERROR"); lines == 0 || lines > 10*(seconds+1) {
		t.Errorf("%d lines in %d s, want at most 10 a second", lines, seconds)
	}
}

// TestHandler_PanicAfterAFlush: what the call has written since goes, also if it was
// flushed before.
func TestHandler_PanicAfterAFlush(t *testing.T) {
	replies := strings.Repeat("r", 100)
	s := serve(t, eventloop.Config{Logger: silence()}, func(conn *eventloop.Conn) error {
		line, err := conn.Reader().Until('\n')
		if err != nil {
			return err
		}
		if line[0] == 'a' {
			conn.Writer().AppendString(replies)
			return nil
		}
		if err := conn.Writer().Flush(); err != nil {
			return err
		}
		conn.Writer().AppendString("a part")
		panic("after a flush")
	})
	client := s.connect()
	send(t, client, "a\nb\n")
	expect(t, client, replies)
	if rest, err := io.ReadAll(client); len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
}

// TestHandler_GoexitAndThenDetachInOnClose: where Detach does nothing. The naive
// version takes it for the handler's, and closes the connection once more.
func TestHandler_GoexitAndThenDetachInOnClose(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		var closes atomic.Int64
		config.OnClose = func(conn *eventloop.Conn, _ error) {
			closes.Add(1)
			conn.Wake()
			conn.Detach()
		}
		s := serve(t, config, func(conn *eventloop.Conn) error {
			_ = conn.Reader().Skip(1)
			runtime.Goexit()
			return nil
		})
		client := s.connect()
		send(t, client, "xy")
		expectEnd(t, client, "")
		client.Close()
		receive(t, s.closed, "OnClose")
		send(t, s.connect(), "x") // one that ends after it
		receive(t, s.closed, "the next OnClose")
		if n := closes.Load(); n != 2 {
			t.Errorf("OnClose ran %d times for two connections", n)
		}
	})
}
