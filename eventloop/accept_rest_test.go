package eventloop_test

import (
	"io"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// gatedListener accepts nothing until somebody ends it, in either way.
type gatedListener struct {
	*net.TCPListener
	gate chan struct{}
	open sync.Once
	// begun gets something when Accept is called.
	begun chan struct{}
}

func (l *gatedListener) letGo() { l.open.Do(func() { close(l.gate) }) }

func (l *gatedListener) Accept() (net.Conn, error) {
	select {
	case l.begun <- struct{}{}:
	default:
	}
	<-l.gate
	return l.TCPListener.Accept()
}

func (l *gatedListener) SetDeadline(deadline time.Time) error {
	err := l.TCPListener.SetDeadline(deadline)
	l.letGo()
	return err
}

func (l *gatedListener) Close() error {
	err := l.TCPListener.Close()
	l.letGo()
	return err
}

// TestStopAccepting_ServesWhatWaitsInTheSocket: peers whose connections nobody has
// accepted yet when the listener stops have sent requests, and are answered. The
// listener accepts nothing before that.
func TestStopAccepting_ServesWhatWaitsInTheSocket(t *testing.T) {
	for name, engine := range map[string]eventloop.Engine{"std": eventloop.EngineStd, "default": eventloop.EngineDefault} {
		for how, stop := range map[string]func(*server) error{
			"StopAccepting": func(s *server) error { return s.StopAccepting() },
			"Shutdown":      func(s *server) error { return s.Shutdown(t.Context()) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				socket, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				gated := &gatedListener{TCPListener: socket.(*net.TCPListener), gate: make(chan struct{}), begun: make(chan struct{}, 1)}
				s := serveSocket(t, gated, eventloop.Config{Engine: engine}, echoLines)
				s.dial = func() (net.Conn, error) { return net.Dial("tcp", socket.Addr().String()) }
				var clients []net.Conn
				for range 20 {
					client := s.connect()
					send(t, client, "x\n")
					clients = append(clients, client)
				}
				receive(t, gated.begun, "Accept")
				stopped := make(chan error, 1)
				go func() { stopped <- stop(s) }()
				for _, client := range clients {
					expect(t, client, "x\n")
				}
				if err := receive(t, stopped, "the stop"); err != nil {
					t.Errorf("%s = %v", how, err)
				}
				if _, err := s.dial(); err == nil {
					t.Error("the socket still listens")
				}
			})
		}
	}
}

// TestStopAccepting_UnderConnects: every connection that the system has opened is
// served, while clients connect as fast as they can.
func TestStopAccepting_UnderConnects(t *testing.T) {
	networks := []string{"tcp"}
	if runtime.GOOS == "linux" { // elsewhere a Unix socket resets whom nobody has accepted
		networks = append(networks, "unix")
	}
	for i := range 10 * len(networks) {
		network, address := networks[i%len(networks)], "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(t.TempDir(), "socket")
		}
		s := serveNetwork(t, network, address, eventloop.Config{}, echoLines)
		served := make(chan struct{}, 10000)
		var clients sync.WaitGroup
		var stopped atomic.Bool
		for range 8 {
			clients.Go(func() {
				// So short because some wait for it, once nobody accepts.
				dialer := net.Dialer{Timeout: 300 * time.Millisecond}
				for {
					last := stopped.Load()
					conn, err := dialer.Dial(network, s.Addr().String())
					if err != nil && !last { // on a busy machine it takes longer
						continue
					}
					if err != nil {
						return
					}
					if _, err = io.WriteString(conn, "x\n"); err == nil {
						_, err = io.ReadFull(conn, make([]byte, 2))
					}
					conn.Close()
					if err != nil {
						t.Errorf("a connection that was opened was not served: %v", err)
						return
					}
					served <- struct{}{}
				}
			})
		}
		for range 100 {
			receive(t, served, "a call")
		}
		if err := s.StopAccepting(); err != nil {
			t.Errorf("StopAccepting() = %v", err)
		}
		stopped.Store(true)
		clients.Wait()
		s.stop()
	}
}
