package eventloop

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestTurnAway_KeepsWhatIsThere: a listening socket takes no connection any more, and
// hands out the one that it has, also when the time for it has passed.
func TestTurnAway_KeepsWhatIsThere(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			l, err := Listen(network, address, Config{Engine: EngineEpoll})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if !l.exclusive {
				t.Error("the socket counts as somebody else's")
			}
			waiting, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer waiting.Close()
			if waits, known := someoneWaits(l.brought); !waits || !known {
				t.Error("nobody waits, it seems")
			}
			turnAway(l.brought)
			if late, err := net.Dial(network, l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("a connection after turnAway: %v, %v; want that it is refused", late, err)
			}
			if err := l.socket.(patientListener).SetDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			accepted, err := l.socket.Accept()
			if err != nil {
				t.Fatalf("the connection that waited: %v", err)
			}
			accepted.Close()
			if accepted, err := l.socket.Accept(); network == "tcp" && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("then Accept = %v, %v", accepted, err)
			}
			if waits, known := someoneWaits(l.brought); waits || known != (network == "tcp") {
				t.Errorf("somebody waits: %v, that is known: %v", waits, known)
			}
		})
	}
}

// TestStopAccepting_OfAUnixSocketIsNoFailure: Serve goes on until Shutdown.
func TestStopAccepting_OfAUnixSocketIsNoFailure(t *testing.T) {
	for name, engine := range map[string]Engine{"std": EngineStd, "epoll": EngineEpoll} {
		t.Run(name, func(t *testing.T) {
			l, err := Listen("unix", filepath.Join(t.TempDir(), "socket"), Config{Engine: engine})
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			opened := make(chan struct{})
			l.config.OnOpen = func(*Conn) { close(opened) }
			go func() { served <- l.Serve(context.Background(), func(*Conn) error { return nil }) }()
			conn, err := net.Dial("unix", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			<-opened
			if err := errors.Join(l.StopAccepting(), l.Shutdown(context.Background()), <-served); err != nil {
				t.Error(err)
			}
			if got := l.stats.acceptErrors.Load(); got != 0 {
				t.Errorf("%d accepts failed", got)
			}
		})
	}
}

// TestStopAccepting_LeavesASharedSocketAlone: who has its file goes on with it.
func TestStopAccepting_LeavesASharedSocketAlone(t *testing.T) {
	l, _ := serveInside(t, Config{}, func(*Conn) error { return nil })
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := l.StopAccepting(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatalf("the other process gets no connections: %v", err)
	}
	conn.Close()
}
