package fulmar_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// clientCalls are the fields that say whom a client calls, and how.
func clientCalls() map[string]field[fulmar.ClientConfig] {
	return map[string]field[fulmar.ClientConfig]{
		"Target": {
			observe:  observeTarget,
			settings: []setting{{"orders:1", "tcp orders:1"}, {"unix:///run/orders", "unix /run/orders"}},
		},
		"Dial": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Target = serve(t, fulmar.ServerConfig{}, adder()).address
				_, err := dial(t, config).Add(context.Background(), 1, 2)
				return errors.Is(err, errNowhere)
			},
			settings: []setting{{nil, false}, {dialNowhere, true}},
		},
		"Protocol": {
			observe: observeProtocol,
			settings: []setting{
				{nil, fulmar.TTHeader}, {fulmar.Bare, fulmar.Bare}, {fulmar.Framed, fulmar.Framed},
				{fulmar.TTHeader, fulmar.TTHeader}, {fulmar.TTHeaderFramed, fulmar.TTHeaderFramed},
			},
		},
		"Local": localField(),
		"QualifiedNames": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Protocol = fulmar.Framed
				return strings.Contains(firstCall(t, config), "\x08Echo:add")
			},
			settings: []setting{{nil, false}, {true, true}},
		},
		"Service": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				return strings.Contains(firstCall(t, config), "\x00\x06shop.a")
			},
			settings: []setting{{nil, false}, {"shop.a", true}},
		},
		"Caller": {
			observe:  observeCaller,
			settings: []setting{{nil, ""}, {"till", "till"}},
		},
		"AssumeMultiplexed": {
			observe: func(t *testing.T, config fulmar.ClientConfig) (connections any) {
				withPeer(t, config, func(client *fulmar.Client, _ func() net.Conn) {
					for range 3 {
						go func() { _ = testservice.NewEchoClient(client).Nothing(context.Background()) }()
					}
					time.Sleep(time.Second)
					connections = client.Stats().Connections
				})
				return connections
			},
			settings: []setting{{nil, 3}, {true, 1}},
		},
		"Compression": {
			observe:  compresses,
			settings: []setting{{nil, false}, {"identity", false}, {"gzip", true}},
		},
		"ShortConnections": {
			observe:  connectionsOfThreeCalls,
			settings: []setting{{nil, 1}, {true, 3}},
		},
		"Interceptors": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Target = serve(t, fulmar.ServerConfig{}, adder()).address
				_, err := dial(t, config).Add(context.Background(), 1, 2)
				return fulmar.CodeOf(err)
			},
			settings: []setting{{nil, fulmar.Code(0)}, {[]fulmar.UnaryInterceptor{refusing}, fulmar.PermissionDenied}},
		},
	}
}

// clientWaits are the fields that say for what a client waits.
func clientWaits() map[string]field[fulmar.ClientConfig] {
	return map[string]field[fulmar.ClientConfig]{
		"WaitForReady": {
			observe: func(t *testing.T, config fulmar.ClientConfig) (code any) {
				simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
					s.network.Refuse(simAddress, true)
					_, err := s.api.Add(context.Background(), 1, 2)
					code = fulmar.CodeOf(err)
				})
				return code
			},
			settings: []setting{{nil, fulmar.Unavailable}, {true, fulmar.DeadlineExceeded}},
		},
	}
}

// clientStreams are the fields that are for streams.
func clientStreams() map[string]field[fulmar.ClientConfig] {
	return map[string]field[fulmar.ClientConfig]{
		"StreamInterceptors": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				server := serveAny(t, fulmar.ServerConfig{}, func(registrar fulmar.Registrar) { testservice.RegisterFeedServer(registrar, &feed{}) })
				config.Target, config.Protocol = server.address, fulmar.GRPC
				return streamed(t, config)
			},
			settings: []setting{{nil, "ok"}, {[]fulmar.StreamInterceptor{refusingStreams}, "permission denied"}},
		},
	}
}

// refusingStreams refuses all streams.
func refusingStreams(context.Context, fulmar.Stream, fulmar.StreamNext) error {
	return fulmar.NewError(fulmar.PermissionDenied, "no streams")
}

// streamed returns the code that a stream without messages ends with.
func streamed(t *testing.T, config fulmar.ClientConfig) string {
	fill, err := testservice.NewFeedClient(dialAny(t, config)).Fill(t.Context())
	if err == nil {
		_, err = fill.CloseAndRecv()
	}
	return fulmar.CodeOf(err).String()
}

// compresses reports whether a long request is sent in fewer bytes than it has.
func compresses(t *testing.T, config fulmar.ClientConfig) any {
	config.Protocol = fulmar.GRPC
	config.Target = serve(t, fulmar.ServerConfig{}, &testservice.Stub{}).address
	var sent atomic.Int64
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{conn, &sent}, nil
	}
	const length = 20_000
	if _, err := dial(t, config).Echo(context.Background(), &testservice.Message{Text: strings.Repeat("x", length)}); err != nil {
		t.Error(err)
	}
	return sent.Load() < length
}

// countedConn counts what is written.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// observeTarget returns what is dialled.
func observeTarget(t *testing.T, config fulmar.ClientConfig) any {
	dialled := make(chan string, 1)
	config.Dial = func(_ context.Context, network, address string) (net.Conn, error) {
		dialled <- network + " " + address
		return nil, errNowhere
	}
	if err := dial(t, config).Nothing(context.Background()); err == nil {
		t.Error("a call to nowhere succeeded")
	}
	return <-dialled
}

// observeProtocol and observeCaller return what the server sees of the protocol
// and of the caller.
func observeProtocol(t *testing.T, config fulmar.ClientConfig) any {
	return seenByServer(t, config).Protocol()
}

func observeCaller(t *testing.T, config fulmar.ClientConfig) any {
	return seenByServer(t, config).CallerService()
}

func seenByServer(t *testing.T, config fulmar.ClientConfig) fulmar.Call {
	t.Helper()
	seen := make(chan fulmar.Call, 1)
	config.Target = serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		call, _ := fulmar.CallFrom(ctx)
		seen <- call
		return nil
	}}).address
	if err := dial(t, config).Nothing(context.Background()); err != nil {
		t.Fatal(err)
	}
	return <-seen
}

var errNowhere = errors.New("nobody is there")

func dialNowhere(context.Context, string, string) (net.Conn, error) { return nil, errNowhere }

// firstCall returns the bytes of a call of add.
func firstCall(t *testing.T, config fulmar.ClientConfig) (sent string) {
	t.Helper()
	withPeer(t, config, func(client *fulmar.Client, accept func() net.Conn) {
		go func() { _, _ = testservice.NewEchoClient(client).Add(context.Background(), 1, 2) }()
		conn := accept()
		b := make([]byte, 1000)
		n, err := conn.Read(b)
		if err != nil {
			t.Error(err)
		}
		sent = string(b[:n])
		_ = conn.Close()
	})
	return sent
}

// withPeer runs test inside a bubble, with a client and the connections that it
// opens.
func withPeer(t *testing.T, config fulmar.ClientConfig, test func(client *fulmar.Client, accept func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(simnet.Config{})
		listener, err := network.Listen(simAddress)
		if err != nil {
			t.Fatal(err)
		}
		config.Target, config.Dial = simAddress, network.Dial
		client, err := fulmar.NewClient(config)
		if err != nil {
			t.Fatal(err)
		}
		test(client, func() net.Conn {
			conn, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return conn
		})
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		_ = listener.Close()
	})
}

// sumReply returns the framed reply 3 to a call of add.
func sumReply(t *testing.T, sequence int32) []byte {
	t.Helper()
	return frame(message(thriftwire.Reply, "add", sequence, body(t, &testservice.EchoAddResult{Success: thrift.Some[int32](3)})))
}

// clientTimeouts are observed in virtual time, to the nanosecond.
func clientTimeouts() map[string]field[fulmar.ClientConfig] {
	return map[string]field[fulmar.ClientConfig]{
		"Timeout": {
			observe: func(t *testing.T, config fulmar.ClientConfig) (took any) {
				withPeer(t, config, func(client *fulmar.Client, _ func() net.Conn) { took = failsAfter(client) })
				return took
			},
			settings: []setting{{7 * time.Second, 7 * time.Second}, {nil, limits.CallTimeout}, {-1, never}},
		},
		"ConnectTimeout": {
			observe: func(t *testing.T, config fulmar.ClientConfig) (took any) {
				config.Timeout = -1
				simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
					s.network.Partition(simAddress, true)
					took = failsAfter(s.client)
				})
				return took
			},
			settings: []setting{{3 * time.Second, 3 * time.Second}, {nil, limits.ConnectTimeout}, {-1, never}},
		},
		"IdleTimeout": {
			observe: func(t *testing.T, config fulmar.ClientConfig) (took any) {
				config.Protocol = fulmar.Framed
				withPeer(t, config, func(client *fulmar.Client, accept func() net.Conn) {
					go fill(t, testservice.NewEchoClient(client), 1)
					conn := accept()
					call, _ := readFrame(t, conn)
					write(t, conn, sumReply(t, call.Sequence))
					took = closedAfter(t, conn, time.Now())
				})
				return took
			},
			settings: []setting{{7 * time.Second, 7 * time.Second}, {nil, limits.ClientIdleTimeout}, {-1, never}},
		},
		"PingAfter": {
			observe: func(t *testing.T, config fulmar.ClientConfig) (took any) {
				config.Timeout, config.MaxConnectionAge = -1, -1
				simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
					fill(t, s.api, 1)
					s.network.Stall(simAddress, true)
					time.Sleep(time.Nanosecond) // what is sent at the same moment gets through
					took = failsAfter(s.client)
					s.network.Stall(simAddress, false)
				})
				return took
			},
			settings: []setting{{3 * time.Second, 6 * time.Second}, {nil, 2 * limits.PingAfter}, {-1, never}},
		},
		"MaxConnectionAge": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Protocol = fulmar.Framed
				return secondConnection(t, config)
			},
			settings: []setting{
				{time.Minute, span{54 * time.Second, 67 * time.Second}},
				{nil, span{limits.ConnectionAge * 9 / 10, limits.ConnectionAge*11/10 + time.Second}},
				{-1, never},
			},
		},
	}
}

// connectionsOfThreeCalls returns how many connections three calls take, one after the
// other.
func connectionsOfThreeCalls(t *testing.T, config fulmar.ClientConfig) (connections any) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
		for range 3 {
			fill(t, s.api, 1)
		}
		connections = int(s.server.Stats().Network.Accepted)
	})
	return connections
}

// secondConnection returns when a client that makes a call every second opens its
// second connection.
func secondConnection(t *testing.T, config fulmar.ClientConfig) time.Duration {
	t.Helper()
	took := never
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, config, adder(), func(s *simulation) {
		for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Second) {
			fill(t, s.api, 1)
			if s.server.Stats().Network.Accepted > 1 {
				took = time.Since(start)
				return
			}
		}
	})
	return took
}

// failsAfter returns how long a call takes that nobody answers.
func failsAfter(client *fulmar.Client) time.Duration {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := testservice.NewEchoClient(client).Add(ctx, 1, 2)
	if took := time.Since(start); err != nil && took < patience {
		return took
	}
	return never
}

// clientBounds are observed by many calls at a time that nobody answers.
func clientBounds() map[string]field[fulmar.ClientConfig] {
	waiting := []setting{{3, 3}, {-1, 100}}
	if !assert.Enabled {
		// The race detector, for which assertions are on, can follow 8,128
		// goroutines.
		waiting = []setting{{3, 3}, {nil, limits.ClientWaiting}, {-1, limits.ClientWaiting + 100}}
	}
	most := waiting[len(waiting)-1].want.(int)
	return map[string]field[fulmar.ClientConfig]{
		"MaxConnections": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Protocol, config.Timeout = fulmar.Framed, -1
				connected, _ := callAtOnce(t, config, limits.ClientConnections+100)
				return connected
			},
			settings: []setting{{3, 3}, {nil, limits.ClientConnections}, {-1, limits.ClientConnections + 100}},
		},
		"MaxWaiting": {
			observe: func(t *testing.T, config fulmar.ClientConfig) any {
				config.Protocol, config.MaxConnections, config.Timeout = fulmar.Framed, 1, -1
				calls := most + 1
				if config.MaxWaiting > 0 {
					calls = 2*config.MaxWaiting + 1
				}
				connected, refused := callAtOnce(t, config, calls)
				return calls - connected - refused
			},
			settings: waiting,
		},
	}
}

// callAtOnce makes many calls at a time to a peer that does not answer, and
// returns how many have a connection, and how many were refused.
func callAtOnce(t *testing.T, config fulmar.ClientConfig, calls int) (connected, refused int) {
	t.Helper()
	var failed atomic.Int64
	var held holder
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxConnections: -1}, config, held.stub(), func(s *simulation) {
		defer held.begin()()
		for range calls {
			go func() {
				if s.api.Nothing(context.Background()) != nil {
					failed.Add(1)
				}
			}()
		}
		synctest.Wait()
		connected, refused = int(held.started.Load()), int(failed.Load())
	})
	return connected, refused
}
