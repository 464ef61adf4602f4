package eventloop_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// keptMessage is longer than what the pool keeps, so that memory is made for as much.
const keptMessage = 3 << 20

// keeper keeps messages in the memory in which they arrived.
type keeper struct {
	mu       sync.Mutex
	messages [][]byte
	refused  int
	noted    chan struct{}
}

func (k *keeper) note(message []byte, kept bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept {
		k.messages = append(k.messages, message)
	} else {
		k.refused++
	}
	k.noted <- struct{}{}
}

// check finds out whether messages are what they were. Half of each was changed by its handler.
func (k *keeper) check(t *testing.T, least int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.messages) < least {
		t.Errorf("%d messages were kept where they were, want %d; %d had to be copied", len(k.messages), least, k.refused)
	}
	for i, message := range k.messages {
		half := len(message) / 2
		if bytes.Count(message[half:], message[half:half+1]) != len(message)-half || bytes.Count(message[:half], []byte("!")) != half {
			t.Errorf("message %d has changed", i)
		}
	}
}

// TestKeep_IsNobodyElses: what a handler keeps, whether it has let go of its connection or not,
// and whether that has gone on or not, stays what the handler has made of it while the
// connection and others read as much.
func TestKeep_IsNobodyElses(t *testing.T) {
	for name, read := range map[string]func(conn *eventloop.Conn, k *keeper) error{
		"at once": func(conn *eventloop.Conn, k *keeper) error {
			message, err := conn.Reader().Next(keptMessage)
			if err != nil {
				return err
			}
			k.keep(message, conn.Reader().Keep)
			conn.Writer().AppendString("read\n")
			return nil
		},
		"without the connection": func(conn *eventloop.Conn, k *keeper) error {
			message, err := conn.Reader().Next(keptMessage)
			if err != nil {
				return err
			}
			call := conn.Detach()
			k.keep(message, call.Keep)
			if call.Attach() {
				conn.Writer().AppendString("read\n")
				return nil
			}
			_, err = conn.WriteBuffers([][]byte{[]byte("read\n")})
			return err
		},
		"when the connection has gone on": func(conn *eventloop.Conn, k *keeper) error {
			message, err := conn.Reader().Next(keptMessage)
			if err != nil {
				return err
			}
			call := conn.Detach()
			call.WillWait()
			if _, err = conn.WriteBuffers([][]byte{[]byte("read\n")}); err != nil {
				return err
			}
			k.keep(message, call.Keep)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
				const connections, rounds = 2, 8
				k := &keeper{noted: make(chan struct{}, connections*rounds)}
				s := serve(t, config, func(conn *eventloop.Conn) error { return read(conn, k) })
				inlineIfAuto(s, config)
				for range connections {
					client := s.connect()
					for round := range rounds {
						sendLong(t, client, bytes.Repeat([]byte{byte('a' + round)}, keptMessage))
						expect(t, client, "read\n")
					}
				}
				for range connections * rounds {
					receive(t, k.noted, "a message")
				}
				k.check(t, connections*rounds/2)
			})
		})
	}
}

// keep changes half of a message if it may keep it.
func (k *keeper) keep(message []byte, keep func(n int) bool) {
	kept := keep(len(message))
	if kept {
		half := message[:len(message)/2]
		copy(half, bytes.Repeat([]byte("!"), len(half)))
	}
	k.note(message, kept)
}

// TestKeep_NotWhatWouldWasteMemory: a message that is little of its memory, or may lie in that
// of the goroutine that polls, has to be copied.
func TestKeep_NotWhatWouldWasteMemory(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		for _, size := range []int{1 << 10, 48 << 10, 64 << 10, 1<<20 + 1} {
			s := serve(t, config, func(conn *eventloop.Conn) error {
				if _, err := conn.Reader().Next(size); err != nil {
					return err
				}
				if conn.Reader().Keep(size) {
					conn.Writer().AppendString("kept\n")
				} else {
					conn.Writer().AppendString("none\n")
				}
				return nil
			})
			client := s.connect()
			sendLong(t, client, make([]byte, size))
			expect(t, client, "none\n")
		}
	})
}
