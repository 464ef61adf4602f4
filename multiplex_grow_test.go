package fulmar_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// opener opens a connection over a network.
type opener func(ctx context.Context, network *simnet.Network) (net.Conn, error)

// dialsMax is more than any test needs: a client that opens one connection after
// the other comes to an end.
const dialsMax = 1000

func open(ctx context.Context, network *simnet.Network) (net.Conn, error) {
	return network.Dial(ctx, "tcp", simAddress)
}

// dials notes when a client opens connections, and decides how.
type dials struct {
	network *simnet.Network
	mu      sync.Mutex
	how     opener
	times   []time.Time
}

func (d *dials) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d.mu.Lock()
	how := d.how
	d.times = append(d.times, time.Now())
	enough := len(d.times) > dialsMax
	d.mu.Unlock()
	if enough {
		return nil, errors.New("there were enough connections")
	}
	return how(ctx, d.network)
}

// begin forgets what was, and opens connections in this way from now on.
func (d *dials) begin(how opener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.how, d.times = how, nil
}

// at returns when connections were opened.
func (d *dials) at() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.times)
}

// closedConn is a connection to the server that is closed already.
func closedConn(ctx context.Context, network *simnet.Network) (net.Conn, error) {
	conn, err := open(ctx, network)
	if err == nil {
		err = conn.Close()
	}
	return conn, err
}

// obstacles are ways in which no connection can be opened.
func obstacles() map[string]opener {
	return map[string]opener{
		"refused": func(context.Context, *simnet.Network) (net.Conn, error) { return nil, errors.New("refused") },
		"hanging": func(ctx context.Context, _ *simnet.Network) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"closed":  closedConn,
	}
}

// TestMultiplex_GrowthThatFailsHarmsNoCall: every shared connection is busy, so
// calls try to open one more, which does not work. Each of them has its answer
// all the same, in time, and the tries become rarer. Once it works again the
// client notices, and begins with the short pause when it fails anew.
func TestMultiplex_GrowthThatFailsHarmsNoCall(t *testing.T) {
	for name, obstacle := range obstacles() {
		for _, known := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", asking", true: ", known"}[known], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					growInVain(t, fulmar.ClientConfig{AssumeMultiplexed: known, Timeout: -1}, obstacle)
				})
			})
		}
	}
}

func growInVain(t *testing.T, config fulmar.ClientConfig, obstacle opener) {
	d := &dials{network: simnet.New(simnet.Config{}), how: open}
	listener, err := d.network.Listen(simAddress)
	if err != nil {
		t.Fatal(err)
	}
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	stop, release := serveOn(t, listener, stub), held.begin()
	config.Target, config.Dial = simAddress, d.dial
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	api := testservice.NewEchoClient(client)
	// Shorter than ConnectTimeout: a call must not wait for that.
	const timeout, every = limits.ConnectTimeout / 2, limits.GrowPauseMin / 4
	add := func() {
		if sum, err := api.Add(context.Background(), 1, 2, fulmar.Timeout(timeout)); sum != 3 || err != nil {
			t.Errorf("Add = %d, %v", sum, err)
		}
	}
	add()
	fill := func() (wait func()) {
		calls := call(limits.MultiplexedGrow, func(int) {
			if err := api.Nothing(context.Background()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		return calls.Wait
	}
	var waits []func()
	for connections, lasting := range []time.Duration{5 * limits.GrowPauseMax, 10 * limits.GrowPauseMin} {
		waits = append(waits, fill())
		d.begin(obstacle)
		for range lasting / every {
			add()
			time.Sleep(every)
		}
		checkPauses(t, d.at(), lasting, every+timeout)
		if stats := client.Stats(); stats.Multiplexed != connections+1 {
			t.Errorf("while it fails: %+v, want %d shared", stats, connections+1)
		}
		d.begin(open)
		time.Sleep(limits.GrowPauseMax)
		add()
		if stats := client.Stats(); stats.Multiplexed != connections+2 {
			t.Errorf("once it works: %+v, want %d shared", stats, connections+2)
		}
	}
	release()
	for _, wait := range waits {
		wait()
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
}

// checkPauses wants the pauses between tries to grow as they should, and as many
// tries as that makes in a time. Each may be late by slack.
func checkPauses(t *testing.T, tries []time.Time, lasting, slack time.Duration) {
	t.Helper()
	var total time.Duration
	pause := limits.GrowPauseMin
	for i := 1; i < len(tries); i++ {
		got := tries[i].Sub(tries[i-1])
		if got < pause || got > pause+slack {
			t.Errorf("pause %d took %v, want %v and at most %v more", i, got, pause, slack)
		}
		total += got
		pause = min(2*pause, limits.GrowPauseMax)
	}
	if len(tries) < 2 || total+pause+slack < lasting {
		t.Errorf("%d tries in %v: there should be another after %v", len(tries), lasting, total+pause)
	}
}

// TestMultiplex_ConnectionsThatBreakAtOnce: a peer that is known to share
// connections closes each as soon as it is open. A call ends with an error that
// says so, and opens two connections at most, not one after the other.
func TestMultiplex_ConnectionsThatBreakAtOnce(t *testing.T) {
	const calls = 50
	cases := map[string]struct {
		how  opener
		want string
	}{
		"before it is used": {closedConn, "broke before it was used"},
		"by the peer":       {open, ""},
		"while it is opened": {func(ctx context.Context, network *simnet.Network) (net.Conn, error) {
			conn, err := open(ctx, network)
			return endedConn{conn}, err
		}, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dials{network: simnet.New(simnet.Config{}), how: test.how}
				closing := func(net.Conn) {}
				withFakeOn(t, d.network, fulmar.ClientConfig{AssumeMultiplexed: true, Dial: d.dial}, closing, func(client *fulmar.Client) {
					api := testservice.NewEchoClient(client)
					for i := range calls {
						_, err := api.Add(context.Background(), 1, 2)
						if e := asError(t, err); e.Code() != fulmar.Unavailable || e.Executed() == fulmar.ExecutedYes || !strings.Contains(e.Message(), test.want) {
							t.Errorf("a call: %v: %v", e, e.Executed())
						}
						// One that is gone before it is used is tried once more.
						if n := len(d.at()); n < i+1 || n > 2*(i+1) {
							t.Errorf("%d connections were opened for %d calls", n, i+1)
							break
						}
					}
					synctest.Wait()
					if stats := client.Stats(); stats.Connections != 0 {
						t.Errorf("%+v", stats)
					}
				})
			})
		})
	}
}

// endedConn is a connection that nothing arrives on and that has ended, which
// only reading shows.
type endedConn struct{ net.Conn }

func (endedConn) Read([]byte) (int, error) { return 0, io.EOF }
