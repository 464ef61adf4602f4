package eventloop_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// FuzzTLS sends any bytes, cut anywhere, to a listener with TLS: in place of a handshake,
// or behind one. The first byte says which, and to which engine, the second how long the
// pieces are. The connection must end, nothing but alerts may come back, and another
// client must be served.
func FuzzTLS(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x10GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x01\x01\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"))
	f.Add([]byte("\x00\x03\x16\x03\x01\x40\x00\x01"))
	f.Add([]byte("\x02\x20\x17\x03\x03\x00\x20????????????????????????????????"))
	f.Add([]byte("\x03\x07\x15\x03\x03\x00\x02\x01\x00"))
	f.Add([]byte("\x02\x02\x16\x03\x03\x00\x04\x00\x00\x00\x00"))
	f.Add([]byte("\x02\x02\x17\x03\x03\xff\xff\x00"))
	serverConfig, clientConfig := tlsConfigs(f)
	var listeners []*eventloop.Listener
	for _, engine := range []eventloop.Engine{eventloop.EngineDefault, eventloop.EngineStd} {
		listener, err := eventloop.Listen("tcp", "127.0.0.1:0", eventloop.Config{Engine: engine, TLS: serverConfig, Logger: silence()})
		if err != nil {
			f.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- listener.Serve(context.Background(), echoLines) }()
		f.Cleanup(func() {
			listener.Close()
			if err := <-served; err != nil {
				f.Error(err)
			}
		})
		listeners = append(listeners, listener)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 2 || len(program) > 64<<10 {
			return
		}
		address := listeners[program[0]&1].Addr().String()
		socket, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		socket.SetDeadline(time.Now().Add(patience))
		if program[0]&2 != 0 {
			expectEcho(t, tls.Client(socket, clientConfig))
		}
		for rest, length := program[2:], int(program[1])+1; len(rest) > 0; {
			n := min(length, len(rest))
			if _, err := socket.Write(rest[:n]); err != nil {
				break // the server has closed it
			}
			rest = rest[n:]
		}
		socket.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, socket); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection does not end")
		}
		good, err := tls.Dial("tcp", address, clientConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer good.Close()
		good.SetDeadline(time.Now().Add(patience))
		expectEcho(t, good)
	})
}

func expectEcho(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "line\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "line\n" {
		t.Fatalf("read %q, %v", got, err)
	}
}
