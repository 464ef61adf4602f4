package calls_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// What goes wrong between a Fulmar client and the server of a peer.

func TestOutbound_WrongRepliesAreErrors(t *testing.T) {
	failures := []struct {
		kind     everything.Misbehaviour
		code     fulmar.Code
		origin   fulmar.Origin
		executed fulmar.Executed
	}{
		{everything.Misbehaviour_WRONG_SEQUENCE_ID, fulmar.Internal, fulmar.OriginTransport, fulmar.ExecutedMaybe},
		{everything.Misbehaviour_WRONG_METHOD_NAME, fulmar.Internal, fulmar.OriginTransport, fulmar.ExecutedMaybe},
		{everything.Misbehaviour_WRONG_MESSAGE_TYPE, fulmar.Internal, fulmar.OriginTransport, fulmar.ExecutedMaybe},
		{everything.Misbehaviour_EMPTY_RESULT, fulmar.Internal, fulmar.OriginRemote, fulmar.ExecutedYes},
		{everything.Misbehaviour_HANG_UP, fulmar.Unavailable, fulmar.OriginTransport, fulmar.ExecutedMaybe},
	}
	eachPeer(t, []string{peer.Thriftpy2, peer.Apache}, func(t *testing.T, name string, transport transport) {
		api := connect(t, peer.Serve(t, name, transport.name), transport)
		for _, want := range failures {
			t.Run(want.kind.String(), func(t *testing.T) {
				_, err := api.Misbehave(t.Context(), want.kind)
				var e *fulmar.Error
				if !errors.As(err, &e) || e.Code() != want.code || e.Origin() != want.origin || e.Executed() != want.executed {
					t.Errorf("got %v (%+v), want %+v", err, e, want)
				}
				if answer, err := api.Misbehave(t.Context(), everything.Misbehaviour_NONE); err != nil || answer != 1 {
					t.Errorf("the next call: %d, %v", answer, err)
				}
			})
		}
	})
}

func TestOutbound_UnknownMethodIsUnimplemented(t *testing.T) {
	// They know nothing of UUIDs, so their servers lack the service.
	eachPeer(t, []string{peer.Thriftpy2, peer.Kitex, peer.ApacheGo}, func(t *testing.T, name string, transport transport) {
		api := connect(t, peer.Serve(t, name, transport.name), transport)
		_, err := api.NilUUID(t.Context())
		var e *fulmar.Error
		if !errors.As(err, &e) || e.Code() != fulmar.Unimplemented || e.Origin() != fulmar.OriginRemote {
			t.Errorf("got %v", err)
		}
		if name == peer.Kitex {
			return // Its server closes the connection behind such a reply.
		}
		if err := api.Ping(t.Context()); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestOutbound_SlowServersMeetTheDeadline(t *testing.T) {
	eachPeer(t, []string{peer.Thriftpy2, peer.Apache, peer.Kitex, peer.ApacheGo}, func(t *testing.T, name string, transport transport) {
		api := connect(t, peer.Serve(t, name, transport.name), transport)
		if err := api.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		// On a busy machine a little time passes before the call is sent, or its end noticed.
		var e *fulmar.Error
		var err error
		var pause time.Duration
		for timeout := 50 * time.Millisecond; timeout < 2*time.Second; timeout *= 2 {
			pause = 20 * timeout
			_, err = api.Pause(t.Context(), int32(pause.Milliseconds()), fulmar.Timeout(timeout))
			if !errors.As(err, &e) || e.Executed() != fulmar.ExecutedNo && e.Elapsed() < pause {
				break
			}
		}
		if !errors.As(err, &e) || e.Code() != fulmar.DeadlineExceeded || e.Executed() != fulmar.ExecutedMaybe {
			t.Fatalf("got %v", err)
		}
		if e.Elapsed() >= pause {
			t.Errorf("gave up after %v, when there was a reply", e.Elapsed())
		}
		// The reply to the first call is still to come; it must not be taken for
		// that to the second.
		if got, err := api.Pause(t.Context(), 1); err != nil || got != 1 {
			t.Errorf("the next call: %d, %v", got, err)
		}
	})
}

func TestOutbound_ConnectionsThatTheServerClosedAreReplaced(t *testing.T) {
	eachPeer(t, []string{peer.Thriftpy2, peer.Apache}, func(t *testing.T, name string, transport transport) {
		address := peer.Serve(t, name, transport.name, "--idle-timeout", "0.2")
		var opened []net.Conn
		client, err := fulmar.NewClient(fulmar.ClientConfig{
			Target:   address,
			Protocol: transport.protocol,
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				opened = append(opened, conn)
				return conn, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		api := everything.NewEverythingClient(client)
		if err := api.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The server has closed the pooled connection once its end can be read
		// here. Reading that takes nothing away: the client finds the same end.
		if err := opened[0].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if n, err := opened[0].Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Fatalf("read %d bytes of an idle connection, %v; want its end", n, err)
		}
		if err := api.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if len(opened) != 2 {
			t.Errorf("%d connections were opened for two calls, want 2", len(opened))
		}
	})
}

func TestOutbound_CallsAtTheSameTimeGetTheirOwnReplies(t *testing.T) {
	const callers, calls = 8, 25
	eachPeer(t, []string{peer.Thriftpy2, peer.Apache, peer.Kitex, peer.ApacheGo}, func(t *testing.T, name string, transport transport) {
		api := connect(t, peer.Serve(t, name, transport.name), transport)
		var group sync.WaitGroup
		for caller := range int32(callers) {
			group.Go(func() {
				for call := range int32(calls) {
					value := caller*calls + call
					if got, err := api.FlipI32(context.Background(), value); err != nil || got != ^value {
						t.Errorf("FlipI32(%d): %d, %v", value, got, err)
						return
					}
				}
			})
		}
		group.Wait()
	})
}
