package eventloop_test

import (
	"bytes"
	"errors"
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
	for name, answer := range map[string]func(conn *eventloop.Conn, message []byte, k *keeper) error{
		"at once": func(conn *eventloop.Conn, message []byte, k *keeper) error {
			k.keep(message, conn.Reader().Keep)
			conn.Writer().AppendString("read\n")
			return nil
		},
		"without the connection": func(conn *eventloop.Conn, message []byte, k *keeper) error {
			call := conn.Detach()
			k.keep(message, call.Keep)
			if call.Attach() {
				conn.Writer().AppendString("read\n")
				return nil
			}
			_, err := conn.WriteBuffers([][]byte{[]byte("read\n")})
			return err
		},
		"when the connection has gone on": func(conn *eventloop.Conn, message []byte, k *keeper) error {
			call := conn.Detach()
			call.WillWait()
			_, err := conn.WriteBuffers([][]byte{[]byte("read\n")})
			k.keep(message, call.Keep)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
				const connections, rounds = 2, 8
				k := &keeper{noted: make(chan struct{}, connections*rounds)}
				s := serve(t, config, func(conn *eventloop.Conn) error {
					message, err := conn.Reader().Next(keptMessage)
					if err != nil {
						return err
					}
					return answer(conn, message, k)
				})
				inlineIfAuto(s, config)
				for range connections {
					client := s.connect()
					for round := 0; round < rounds; round += 2 { // the second one behind the first
						first := bytes.Repeat([]byte{byte('a' + round)}, keptMessage)
						sendLong(t, client, append(first, bytes.Repeat([]byte{byte('b' + round)}, keptMessage)...))
						expect(t, client, "read\nread\n")
					}
				}
				for range connections * rounds {
					receive(t, k.noted, "a message")
				}
				k.check(t, connections*rounds/4)
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

// TestKeep_NotWhatWouldWasteMemory: a message that is little of its memory, or lies in memory
// that is used again, has to be copied.
func TestKeep_NotWhatWouldWasteMemory(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		for _, size := range []int{1 << 10, 48 << 10, 64 << 10, 120 << 10, 1<<20 - 100, 1<<20 + 1, 2<<20 - 100} {
			for _, gone := range []bool{false, true} {
				s := serve(t, config, func(conn *eventloop.Conn) error {
					if _, err := conn.Reader().Next(size); err != nil {
						return err
					}
					keep := conn.Reader().Keep
					if gone {
						call := conn.Detach()
						call.WillWait()
						keep = call.Keep
					}
					answer := "none\n"
					if keep(size) {
						answer = "kept\n"
					}
					_, err := conn.WriteBuffers([][]byte{[]byte(answer)})
					return err
				})
				client := s.connect()
				sendLong(t, client, make([]byte, size))
				expect(t, client, "none\n")
			}
		}
	})
}

// TestKeep_IsConsumed: a handler that keeps what it has read and wants more does not get it again.
func TestKeep_IsConsumed(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		kept, known := make(chan []byte, 1), false
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if !known {
				message, err := conn.Reader().Next(keptMessage)
				if err != nil {
					return err
				}
				if !conn.Reader().Keep(len(message)) {
					return errors.New("it cannot be kept")
				}
				clear(message)
				known = true
				kept <- message
			}
			end, err := conn.Reader().Next(4)
			if err != nil {
				return err
			}
			conn.Writer().Append(end)
			return nil
		})
		client := s.connect()
		sendLong(t, client, bytes.Repeat([]byte("x"), keptMessage))
		sendLong(t, client, []byte("end\n"))
		expect(t, client, "end\n")
		if bytes.Count(receive(t, kept, "what was kept"), []byte{0}) != keptMessage {
			t.Error("what was kept has changed")
		}
	})
}

// TestKeep_NotOnDialledConnections: their memory may be lent to them.
func TestKeep_NotOnDialledConnections(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if err := conn.Reader().Skip(1); err != nil {
				return err
			}
			conn.Writer().Append(make([]byte, keptMessage))
			return nil
		})
		conn, err := eventloop.Dial(t.Context(), "tcp", s.Addr().String(), eventloop.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2 {
			if _, err := conn.WriteBuffers([][]byte{[]byte("?")}); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Reader().Next(keptMessage); err != nil {
				t.Fatal(err)
			}
			if conn.Reader().Keep(keptMessage) {
				t.Error("it was kept")
			}
			conn.Reader().Shrink()
		}
	})
}
