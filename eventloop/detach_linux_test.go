package eventloop_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// inlineIfAuto makes DispatchAuto run handlers inline, until it decides otherwise.
func inlineIfAuto(s *server, config eventloop.Config) {
	if config.Dispatch == eventloop.DispatchAuto {
		s.ForceInline()
	}
}

// TestDetach_GoesOnWithWhatHappenedBefore: while a handler runs on another
// goroutine than the one that polls, what happens to its connection is left to it.
// The naive version lets go of the connection and forgets it, so it waits as long as
// the call that had let go.
func TestDetach_GoesOnWithWhatHappenedBefore(t *testing.T) {
	for name, test := range map[string]struct {
		happen func(t *testing.T, s *server, conn *eventloop.Conn, client func(string))
		then   string
	}{
		"bytes": {func(t *testing.T, s *server, conn *eventloop.Conn, client func(string)) {
			events := s.Stats().Loop.Events
			client("more\n")
			eventually(t, "the event", func() bool { return s.Stats().Loop.Events > events })
			// The next wait comes after the event was looked at.
			wakeups := s.Stats().Loop.Wakeups
			other := s.connect()
			send(t, other, "wait\n")
			eventually(t, "another event", func() bool { return s.Stats().Loop.Wakeups > wakeups })
		}, "more\n"},
		"a wake": {func(_ *testing.T, _ *server, conn *eventloop.Conn, _ func(string)) { conn.Wake() }, ""},
		"the deadline": {func(t *testing.T, _ *server, conn *eventloop.Conn, _ func(string)) {
			if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Error(err)
			}
		}, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			entered, detaches, release := make(chan *eventloop.Conn, 2), make(chan struct{}), make(chan struct{})
			then := make(chan string, 2)
			config := onePoller(eventloop.DispatchSpawn)
			config.OnClose = func(_ *eventloop.Conn, err error) {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					then <- "expired"
				}
			}
			s := serve(t, config, func(conn *eventloop.Conn) error {
				line, err := conn.Reader().Next(conn.Reader().Len())
				if err != nil {
					return err
				}
				if string(line) != "first\n" {
					if string(line) != "wait\n" {
						then <- string(line)
					}
					return nil
				}
				entered <- conn
				<-detaches
				conn.Detach()
				<-release
				return nil
			})
			defer close(release)
			client := s.connect()
			send(t, client, "first\n")
			test.happen(t, s, receive(t, entered, "the handler"), func(line string) { send(t, client, line) })
			close(detaches)
			if got := receive(t, then, "what the connection does then"); got != test.then {
				t.Errorf("then came %q, want %q", got, test.then)
			}
		})
	}
}
