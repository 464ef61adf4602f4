package eventloop_test

import (
	"bytes"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// longMessage is more than one read brings.
const longMessage = 256 << 10

// TestDetach_LongMessagesStayUntilTheEnd: what a call looks into is nobody else's while it
// runs, although its connection and another one go on and read as much. It says that it is
// done, or returns.
func TestDetach_LongMessagesStayUntilTheEnd(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		const connections, rounds = 4, 30
		entered, release := make(chan bool, connections), make(chan struct{})
		s := serve(t, config, func(conn *eventloop.Conn) error {
			message, err := conn.Reader().Next(longMessage)
			if err != nil {
				return err
			}
			first := message[0]
			call := conn.Detach()
			if first%2 == 0 {
				call.WillWait()
				entered <- true
				<-release
			}
			answer := []byte("same\n")
			if bytes.Count(message, message[:1]) != len(message) || message[0] != first {
				answer = []byte("other\n")
			}
			call.Done()
			call.Done() // again has no effect
			if call.Attach() {
				conn.Writer().Append(answer)
				return nil
			}
			_, err = conn.WriteBuffers([][]byte{answer})
			return err
		})
		inlineIfAuto(s, config)
		var clients []net.Conn
		for range connections {
			clients = append(clients, s.connect())
		}
		for round := range rounds {
			for i, client := range clients { // of each two a call that waits, and one that does not
				sendLong(t, client, longOf(2*(round+i)))
				receive(t, entered, "a call that waits")
				sendLong(t, client, longOf(2*(round+i)+1))
				expect(t, client, "same\n")
			}
			for range clients {
				release <- struct{}{}
			}
			for _, client := range clients {
				expect(t, client, "same\n")
			}
		}
	})
}

// TestMemory_OfCallsThatConnectionsGoOnWithout is used again: long messages, each in a call
// that its connection goes on without, take memory of a few.
func TestMemory_OfCallsThatConnectionsGoOnWithout(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		const rounds = 200
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if _, err := conn.Reader().Next(longMessage); err != nil {
				return err
			}
			conn.Detach().WillWait()
			_, err := conn.WriteBuffers([][]byte{[]byte("here\n")})
			return err
		})
		inlineIfAuto(s, config)
		client, message := s.connect(), longOf('x')
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			sendLong(t, client, message)
			expect(t, client, "here\n")
		}
		runtime.ReadMemStats(&after)
		if bytes := (after.TotalAlloc - before.TotalAlloc) / rounds; bytes > longMessage/2 {
			t.Errorf("%d bytes are allocated for a message of %d", bytes, longMessage)
		}
	})
}

// sendLong sends a long message, which is of one byte.
func sendLong(t *testing.T, client net.Conn, message []byte) {
	t.Helper()
	client.SetWriteDeadline(time.Now().Add(patience))
	if _, err := client.Write(message); err != nil {
		t.Fatal(err)
	}
}

func longOf(b int) []byte { return bytes.Repeat([]byte{byte(b)}, longMessage) }
