package eventloop_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// beginHandshakes connects one that says nothing and one that says half of the first
// record, and returns both, and the server's ends.
func beginHandshakes(t *testing.T, s *server, plain func() net.Conn) (clients []net.Conn, served []*eventloop.Conn) {
	t.Helper()
	silent, half := plain(), plain()
	send(t, half, "\x16\x03\x01\x00\x50")
	eventually(t, "all connections", func() bool { return s.Stats().Open == 2 })
	s.Connections(func(conn *eventloop.Conn) bool {
		served = append(served, conn)
		return true
	})
	return []net.Conn{silent, half}, served
}

// TestSecure_WakeBeforeTheHandshake: no handler runs before its connection is secure.
// One that did would not know the peer, and wait for ever to write.
func TestSecure_WakeBeforeTheHandshake(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		woken := make(chan *tls.ConnectionState, 4)
		s, plain := serveSecure(t, config, func(conn *eventloop.Conn) error {
			woken <- conn.TLS()
			conn.Writer().AppendString("woken\n")
			return nil
		})
		_, clientConfig := tlsConfigs(t)
		clientConfig.InsecureSkipVerify = true
		clients, served := beginHandshakes(t, s, plain)
		for _, conn := range served {
			conn.Wake()
		}
		client := tls.Client(clients[0], clientConfig)
		expect(t, client, "woken\n")
		if receive(t, woken, "the handler") == nil {
			t.Error("the handler was called before the handshake")
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if len(woken) != 0 {
			t.Error("the handler was called although there was no handshake")
		}
	})
}

// TestSecure_StateDuringTheHandshake: who asks who the peer is does not wait for its
// handshake.
func TestSecure_StateDuringTheHandshake(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		config.HandshakeTimeout = -1
		s, plain := serveSecure(t, config, echoLines)
		clients, served := beginHandshakes(t, s, plain)
		asked := make(chan *tls.ConnectionState)
		for _, conn := range served {
			go func() { asked <- conn.TLS() }()
		}
		for range served {
			if state := receive(t, asked, "TLS, before the handshake is over"); state != nil {
				t.Errorf("TLS = %+v", state)
			}
		}
		for _, client := range clients {
			client.Close()
		}
	})
}
