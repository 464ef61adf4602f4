package simnet_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

const server = "server:1"

// connect returns both ends of a connection to server.
func connect(t *testing.T, network *simnet.Network) (client, accepted net.Conn) {
	t.Helper()
	client, accepted, stop, err := dialAndAccept(network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return client, accepted
}

func dialAndAccept(network *simnet.Network) (client, accepted net.Conn, stop func(), err error) {
	listener, err := network.Listen(server)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err = network.Dial(context.Background(), "tcp", server)
	if err != nil {
		return nil, nil, nil, err
	}
	accepted, err = listener.Accept()
	stop = func() {
		client.Close()
		accepted.Close()
		listener.Close()
	}
	return client, accepted, stop, err
}

// elapse lets virtual time pass.
func elapse(d time.Duration) { <-time.After(d) }

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if n, err := io.WriteString(conn, text); n != len(text) || err != nil {
		t.Fatalf("Write of %q = %d, %v", text, n, err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v, want %q", got[:n], err, text)
	}
}

func expectReadError(t *testing.T, conn net.Conn, want error) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, want) {
		t.Errorf("Read = %d, %v, want 0, %v", n, err, want)
	}
}

func halfClose(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
}

func checkIdle(conn net.Conn) error {
	return conn.(interface{ CheckIdle() error }).CheckIdle()
}

func TestNetwork_ConnectionsAreNetConns(t *testing.T) {
	for name, config := range map[string]simnet.Config{
		"perfect":      {},
		"split":        {Seed: 1, SplitPercent: 50},
		"delayed":      {Seed: 2, Delay: 20 * time.Microsecond, DelayJitter: 20 * time.Microsecond},
		"small buffer": {Seed: 3, SplitPercent: 20, BufferBytes: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				return dialAndAccept(simnet.New(config))
			})
		})
	}
}

func TestNetwork_DelayTakesVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		client, accepted := connect(t, simnet.New(simnet.Config{Delay: time.Minute}))
		if got := time.Since(begin); got != 2*time.Minute {
			t.Errorf("Dial took %v, want a round trip of 2m", got)
		}
		begin = time.Now()
		write(t, client, "ping")
		if got := time.Since(begin); got != 0 {
			t.Errorf("Write took %v", got)
		}
		expect(t, accepted, "ping")
		write(t, accepted, "pong")
		expect(t, client, "pong")
		if got := time.Since(begin); got != 2*time.Minute {
			t.Errorf("round trip took %v, want 2m", got)
		}
	})
}

// TestNetwork_SameSeedSameFaults records when which bytes arrive, for several
// connections whose goroutines run in any order.
func TestNetwork_SameSeedSameFaults(t *testing.T) {
	history := func(seed uint64) (sum [sha256.Size]byte) {
		synctest.Test(t, func(t *testing.T) {
			network := simnet.New(simnet.Config{Seed: seed, Delay: time.Second, DelayJitter: time.Second, SplitPercent: 50})
			listener, err := network.Listen(server)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			const connections = 5
			logs := make([]bytes.Buffer, connections)
			var group sync.WaitGroup
			for i := range connections {
				client, err := network.Dial(t.Context(), "tcp", server)
				if err != nil {
					t.Fatal(err)
				}
				accepted, err := listener.Accept()
				if err != nil {
					t.Fatal(err)
				}
				group.Go(func() {
					defer client.Close()
					for n := range 50 {
						client.Write(make([]byte, 1+n))
					}
				})
				group.Go(func() {
					defer accepted.Close()
					p := make([]byte, 100)
					for {
						n, err := accepted.Read(p)
						fmt.Fprintln(&logs[i], n, err, time.Now().UnixNano())
						if err != nil {
							return
						}
					}
				})
			}
			group.Wait()
			hash := sha256.New()
			for i := range logs {
				logs[i].WriteTo(hash)
			}
			sum = [sha256.Size]byte(hash.Sum(nil))
		})
		return sum
	}
	first := history(1)
	for range 20 {
		if history(1) != first {
			t.Fatal("two runs with one seed differ")
		}
	}
	if history(2) == first {
		t.Error("two seeds give the same run")
	}
}

func TestNetwork_SplitsAndMergesWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, accepted := connect(t, simnet.New(simnet.Config{Seed: 7, SplitPercent: 100}))
		message := bytes.Repeat([]byte("0123456789"), 10)
		pieces := 0
		for range 100 {
			write(t, client, string(message))
			var got []byte
			for len(got) < len(message) {
				p := make([]byte, 1000)
				n, err := accepted.Read(p)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p[:n]...)
				pieces++
			}
			if !bytes.Equal(got, message) {
				t.Fatalf("got %q", got)
			}
		}
		if pieces < 250 {
			t.Errorf("100 writes arrived in %d pieces", pieces)
		}
	})
	client, accepted := connect(t, simnet.New(simnet.Config{}))
	write(t, client, "one")
	write(t, client, "two")
	p := make([]byte, 100)
	if n, err := accepted.Read(p); string(p[:n]) != "onetwo" || err != nil {
		t.Errorf("Read = %q, %v, want both writes at once", p[:n], err)
	}
}

func TestNetwork_FullBufferMakesTheWriterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, accepted := connect(t, simnet.New(simnet.Config{}))
		client.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := client.Write(make([]byte, 1<<20))
		if n != 256<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write = %d, %v, want the size of the buffer and a timeout", n, err)
		}
		client.SetWriteDeadline(time.Time{})
		done := make(chan error, 1)
		go func() {
			_, err := client.Write(make([]byte, 1000))
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("Write returned %v although the buffer is full", err)
		default:
		}
		io.CopyN(io.Discard, accepted, 256<<10+1000)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNetwork_DirectionsCloseSeparately(t *testing.T) {
	client, accepted := connect(t, simnet.New(simnet.Config{}))
	write(t, client, "request")
	halfClose(t, client)
	halfClose(t, client) // twice is once
	expect(t, accepted, "request")
	expectReadError(t, accepted, io.EOF)
	expectReadError(t, accepted, io.EOF)
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write after CloseWrite = %v, want EPIPE", err)
	}
	write(t, accepted, "reply")
	accepted.Close()
	expect(t, client, "reply")
	expectReadError(t, client, io.EOF)
}

func TestNetwork_CloseWithUnreadBytesResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, accepted := connect(t, simnet.New(simnet.Config{Delay: time.Second}))
		write(t, client, "never read")
		write(t, accepted, "never seen")
		accepted.Close()
		write(t, client, "does not know yet")
		expectReadError(t, client, syscall.ECONNRESET)
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Write = %v, want a reset", err)
		}
	})
}

func TestNetwork_WritingToAClosedPeerResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, accepted := connect(t, simnet.New(simnet.Config{Delay: time.Second}))
		accepted.Close()
		expectReadError(t, client, io.EOF)
		write(t, client, "accepted by TCP")
		elapse(2 * time.Second) // a round trip
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("second Write = %v, want a reset", err)
		}
	})
}

func TestNetwork_UseAfterCloseFails(t *testing.T) {
	client, _ := connect(t, simnet.New(simnet.Config{}))
	client.Close()
	expectReadError(t, client, net.ErrClosed)
	_, writeErr := client.Write([]byte("x"))
	for name, err := range map[string]error{
		"Write": writeErr, "Close": client.Close(), "SetDeadline": client.SetDeadline(time.Now()), "CheckIdle": checkIdle(client),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s = %v, want net.ErrClosed", name, err)
		}
	}
}

func TestNetwork_CloseWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{BufferBytes: 10})
		client, _ := connect(t, network)
		errs := make(chan error, 3)
		go func() { _, err := client.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := client.Write(make([]byte, 100)); errs <- err }()
		other, err := network.Listen("other")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, err := other.Accept(); errs <- err }()
		synctest.Wait()
		client.Close()
		other.Close()
		for range 3 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("woken with %v, want net.ErrClosed", err)
			}
		}
	})
}

func TestNetwork_CheckIdle(t *testing.T) {
	client, accepted := connect(t, simnet.New(simnet.Config{}))
	if err := checkIdle(client); err != nil {
		t.Errorf("fresh connection: %v", err)
	}
	write(t, accepted, "x")
	if err := checkIdle(client); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("unread byte: %v", err)
	}
	expect(t, client, "x")
	if err := checkIdle(client); err != nil {
		t.Errorf("all read: %v", err)
	}
	accepted.Close()
	if err := checkIdle(client); !errors.Is(err, io.EOF) {
		t.Errorf("closed by the peer: %v, want EOF", err)
	}
}

// TestNetwork_Program lets two goroutines a direction send random pieces
// through bad networks, and compares what arrives.
func TestNetwork_Program(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			network := simnet.New(simnet.Config{
				Seed:         seed,
				Delay:        time.Duration(random.IntN(1000)) * time.Millisecond,
				DelayJitter:  time.Duration(random.IntN(1000)) * time.Millisecond,
				SplitPercent: random.IntN(101),
				BufferBytes:  1 + random.IntN(5000),
			})
			client, accepted := connect(t, network)
			var group sync.WaitGroup
			transfer := func(from, to net.Conn, size int) {
				want := make([]byte, size)
				for i := range want {
					want[i] = byte(i * 7)
				}
				group.Go(func() {
					for rest := want; len(rest) > 0; {
						n, err := from.Write(rest[:min(len(rest), 1+size/20)])
						if err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
						rest = rest[n:]
					}
					halfClose(t, from)
				})
				group.Go(func() {
					got, err := io.ReadAll(to)
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("seed %d: %d bytes arrived, %v, want %d", seed, len(got), err, len(want))
					}
				})
			}
			transfer(client, accepted, random.IntN(20000))
			transfer(accepted, client, random.IntN(20000))
			for range 5 {
				elapse(time.Duration(random.IntN(3000)) * time.Millisecond)
				network.Stall(server, true)
				elapse(time.Duration(random.IntN(3000)) * time.Millisecond)
				network.Stall(server, false)
			}
			group.Wait()
		})
	}
}
