package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// spinningPair returns both ends of a connection, the first of which spins.
func spinningPair(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := Dial(t.Context(), "tcp", listener.Addr().String(), Config{SpinTime: spinTimeMax})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	conn.SpinReads()
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return conn, far
}

// echo sends back what comes, until the end.
func echo(far net.Conn) { _, _ = io.Copy(far, far) }

// TestConn_SpinReads: what arrives while a reader spins is read, and so is what comes when it
// waits; deadlines, the end and Close are noticed by both.
func TestConn_SpinReads(t *testing.T) {
	if !spinsHere() {
		t.Skip("nothing spins here: there is one processor, or less than one may be used")
	}
	conn, far := spinningPair(t)
	go echo(far)
	sent := []byte("0123456789")
	for i := range 3000 {
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		got, err := conn.Reader().Next(len(sent))
		if err != nil || string(got) != string(sent) {
			t.Fatalf("round %d: %q, %v", i, got, err)
		}
	}
	spin := conn.source.spin
	if spin.gap >= 2*spin.most {
		t.Errorf("its waits take %v on the mean, as if nobody had counted them", spin.gap)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Reader().Next(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("behind the deadline: %v", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	closed := make(chan error, 1)
	go func() {
		_, err := conn.Reader().Next(1)
		closed <- err
	}()
	_ = conn.Close()
	if err := <-closed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed on this side: %v", err)
	}
	ended, leaving := spinningPair(t)
	_, _ = leaving.Write([]byte("x"))
	_ = leaving.Close()
	if got, err := ended.Reader().Next(1); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ended.Reader().Next(1); err != io.EOF {
		t.Errorf("closed on the other side: %v", err)
	}
}

// TestReadSpin_TakesTurnsWithTheBudget: all connections have one.
func TestReadSpin_TakesTurnsWithTheBudget(t *testing.T) {
	budget := new(spinBudget)
	now := time.Now()
	first := spinner{most: spinTimeMax, hits: hitsAll, budget: budget}
	second := first
	if !first.worth(now) || !second.worth(now) {
		t.Fatal("they do not spin")
	}
	first.tried(spinShare, false)
	if first.worth(now) || second.worth(now) {
		t.Error("one goes on spinning where the other has spent all")
	}
	if now = now.Add(spinWindow); !second.worth(now) {
		t.Error("it does not spin in the next window")
	}
}
