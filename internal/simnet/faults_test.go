package simnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/simnet"
)

func TestListen_AddressesAreExclusiveAndReusable(t *testing.T) {
	network := simnet.New(simnet.Config{})
	first, err := network.Listen("server:0")
	if err != nil {
		t.Fatal(err)
	}
	second, err := network.Listen("server:0")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	at := first.Addr().String()
	if at == second.Addr().String() {
		t.Errorf("both listen on %s", at)
	}
	if _, err := network.Listen(at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Listen on a used address = %v, want EADDRINUSE", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v, want net.ErrClosed", err)
	}
	again, err := network.Listen(at)
	if err != nil {
		t.Fatalf("Listen after Close: %v", err)
	}
	again.Close()
}

func TestDial_RefusedWithoutListener(t *testing.T) {
	network := simnet.New(simnet.Config{})
	_, err := network.Dial(t.Context(), "tcp", server)
	var operation *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &operation) {
		t.Errorf("Dial = %v, want a net.OpError with ECONNREFUSED", err)
	}
}

func TestDial_WaitsForRoomInTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		listener, err := network.Listen(server)
		if err != nil {
			t.Fatal(err)
		}
		var dialled []net.Conn
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for {
			conn, err := network.Dial(ctx, "tcp", server)
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				break
			}
			dialled = append(dialled, conn)
		}
		if len(dialled) != 128 {
			t.Errorf("%d connections wait for Accept, want 128", len(dialled))
		}
		waiting := make(chan net.Conn)
		go func() {
			conn, err := network.Dial(t.Context(), "tcp", server)
			if err != nil {
				t.Error(err)
			}
			waiting <- conn
		}()
		synctest.Wait()
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		dialled = append(dialled, <-waiting, accepted)
		listener.Close()
		expectReadError(t, dialled[1], syscall.ECONNRESET)
		for _, conn := range dialled {
			conn.Close()
		}
	})
}

func TestDial_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := network.Dial(ctx, "tcp", server); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("Dial = %v after %v", err, time.Since(begin))
		}
	})
}

func TestCut_ResetsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{Delay: time.Second})
		client, accepted := connect(t, network)
		write(t, client, "lost")
		errs := make(chan error, 1)
		go func() { _, err := accepted.Read(make([]byte, 1)); errs <- err }()
		synctest.Wait()
		network.Cut(server)
		if err := <-errs; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Read = %v, want a reset", err)
		}
		if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Write = %v, want a reset", err)
		}
		client, err := network.Dial(t.Context(), "tcp", server)
		if err != nil {
			t.Fatalf("Dial after Cut: %v", err)
		}
		client.Close()
	})
}

func TestHalfClose_EndsTheServersSending(t *testing.T) {
	network := simnet.New(simnet.Config{})
	client, accepted := connect(t, network)
	write(t, accepted, "last words")
	network.HalfClose(server)
	expect(t, client, "last words")
	expectReadError(t, client, io.EOF)
	write(t, client, "still heard")
	expect(t, accepted, "still heard")
	if _, err := accepted.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write = %v, want EPIPE", err)
	}
}

func TestStall_HoldsWhatIsOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{Delay: time.Second})
		client, accepted := connect(t, network)
		write(t, client, "arrived")
		elapse(time.Second)
		write(t, client, "on the way")
		network.Stall(server, true)
		expect(t, accepted, "arrived")

		accepted.SetReadDeadline(time.Now().Add(time.Hour))
		expectReadError(t, accepted, os.ErrDeadlineExceeded)
		accepted.SetReadDeadline(time.Time{})
		// Dialing is not affected.
		other, err := network.Dial(t.Context(), "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		other.Close()

		begin := time.Now()
		network.Stall(server, false)
		expect(t, accepted, "on the way")
		if got := time.Since(begin); got != 0 {
			t.Errorf("took %v after the stall", got)
		}
	})
}

func TestPartition_HidesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{Delay: time.Second})
		client, accepted := connect(t, network)
		network.Partition(server, true)

		// Neither the reset of a close with unread bytes gets through ...
		write(t, client, "never read")
		accepted.Close()
		client.SetReadDeadline(time.Now().Add(time.Hour))
		expectReadError(t, client, os.ErrDeadlineExceeded)
		// ... nor a new connection.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := network.Dial(ctx, "tcp", server); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial = %v, want a timeout", err)
		}
		dialled := make(chan error)
		go func() {
			conn, err := network.Dial(t.Context(), "tcp", server)
			if err == nil {
				conn.Close()
			}
			dialled <- err
		}()
		synctest.Wait()

		network.Partition(server, false)
		if err := <-dialled; err != nil {
			t.Errorf("Dial after the partition: %v", err)
		}
		client.SetReadDeadline(time.Time{})
		// Nothing was unread when the server closed, for "never read" had not
		// arrived: but it was on its way, and finds nobody.
		expectReadError(t, client, syscall.ECONNRESET)
	})
}

// TestNetwork_RefusesNewConnections, while those that exist go on.
func TestNetwork_RefusesNewConnections(t *testing.T) {
	network := simnet.New(simnet.Config{})
	client, accepted := connect(t, network)
	network.Refuse(server, true)
	if _, err := network.Dial(t.Context(), "tcp", server); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial = %v, want it refused", err)
	}
	write(t, client, "goes on")
	expect(t, accepted, "goes on")
	network.Refuse(server, false)
	again, err := network.Dial(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestNetwork_StopsWhatIsSentInTheSameInstant: in a bubble no time passes between a
// fault and what the test does next.
func TestNetwork_StopsWhatIsSentInTheSameInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		client, accepted := connect(t, network)
		write(t, client, "before")
		network.Stall(server, true)
		write(t, client, "after")
		expect(t, accepted, "before")
		accepted.SetReadDeadline(time.Now().Add(time.Second))
		expectReadError(t, accepted, os.ErrDeadlineExceeded)
		accepted.SetReadDeadline(time.Time{})
		network.Stall(server, false)
		expect(t, accepted, "after")
	})
}
