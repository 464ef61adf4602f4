package testservers_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// echo answers lines until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewReader(conn)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					_, _ = conn.Write([]byte(line))
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// ask sends a line through a new connection, and returns what became of it.
func ask(address string, within time.Duration) error {
	conn, err := net.DialTimeout("tcp", address, within)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(within))
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "hello\n" {
		err = errors.New("it came back as " + line)
	}
	return err
}

func TestProxy_FailsAsTold(t *testing.T) {
	const patience, brief = time.Minute, 100 * time.Millisecond
	proxy, err := testservers.NewProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	if err := ask(proxy.Address, patience); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if err := ask(proxy.Address, patience); err == nil {
		t.Error("it lets through what is cut")
	}
	proxy.Restore()
	if err := ask(proxy.Address, patience); err != nil {
		t.Error(err)
	}
	proxy.Darken()
	if err := ask(proxy.Address, brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("in the dark: %v", err)
	}
	proxy.Restore()
	proxy.Slow(brief / 10)
	start := time.Now()
	if err := ask(proxy.Address, patience); err != nil || time.Since(start) < brief/5 {
		t.Errorf("slow: %v after %v", err, time.Since(start))
	}
}
