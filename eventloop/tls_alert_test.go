package eventloop_test

import (
	"crypto/tls"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// brokenRecord looks like a record, and cannot be decrypted.
var brokenRecord = "\x17\x03\x03\x00\x20" + strings.Repeat("?", 32)

// wantBadRecord expects the alert about a broken record.
func wantBadRecord(t *testing.T, peer *tls.Conn) {
	t.Helper()
	_ = peer.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := peer.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
		t.Errorf("the peer got %v, want to be told that a record was bad", err)
	}
}

// TestSecure_AlertBesideAWriter: while the record is read that cannot be understood,
// somebody is writing on the same connection. The alert leaves when he is done.
func TestSecure_AlertBesideAWriter(t *testing.T) {
	onEngines(t, func(t *testing.T, config eventloop.Config) {
		opened := make(chan *eventloop.Conn, 1)
		config.OnOpen = func(conn *eventloop.Conn) { opened <- conn }
		s, plain := serveSecure(t, config, echoLines)
		socket := plain()
		client := tls.Client(socket, &tls.Config{InsecureSkipVerify: true})
		send(t, client, "whole\n")
		expect(t, client, "whole\n")
		conn := receive(t, opened, "the connection")
		end := conn.HoldWriting()
		send(t, socket, brokenRecord)
		for limit := time.Now().Add(10 * time.Second); !conn.Ending(); runtime.Gosched() {
			if time.Now().After(limit) {
				t.Error("the connection goes on")
				break
			}
		}
		end()
		wantBadRecord(t, client)
		if err := receive(t, s.closed, "OnClose"); err == nil {
			t.Error("OnClose got no error")
		}
	})
}

// TestSecure_AlertWhenAWriterIsClosed is the same for a dialled connection, which whoever
// reads it closes.
func TestSecure_AlertWhenAWriterIsClosed(t *testing.T) {
	serverConfig, clientConfig := tlsConfigs(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	told := make(chan *tls.Conn, 1)
	go func() {
		defer close(told)
		socket, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		peer := tls.Server(socket, serverConfig)
		if err := peer.Handshake(); err != nil {
			t.Error(err)
		}
		if _, err := socket.Write([]byte(brokenRecord)); err != nil {
			t.Error(err)
		}
		told <- peer
	}()
	clientConfig.InsecureSkipVerify = true
	socket, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := eventloop.NewTLSConn(t.Context(), socket, eventloop.Config{TLS: clientConfig})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Reader().Peek(1); err == nil {
		t.Fatal("the broken record was read")
	}
	end := conn.HoldWriting()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	end()
	peer := receive(t, told, "the peer")
	defer peer.Close()
	wantBadRecord(t, peer)
}
