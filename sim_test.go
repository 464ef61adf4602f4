package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/thrift"
)

const simAddress = "server:1"

// simulation is a server and a client on an in-memory network, in virtual time.
type simulation struct {
	t       *testing.T
	network *simnet.Network
	server  *fulmar.Server
	client  *fulmar.Client
	api     testservice.EchoClient
	log     *logRecorder
	config  fulmar.ServerConfig
	stub    *testservice.Stub
	// stop ends Serve gracefully; served receives what it returned.
	stop   context.CancelFunc
	served chan error
	// retired are servers that were replaced.
	retired sync.WaitGroup
}

// simulate runs test inside a synctest bubble and takes everything down
// afterwards.
func simulate(t *testing.T, network simnet.Config, server fulmar.ServerConfig, client fulmar.ClientConfig, stub *testservice.Stub, test func(s *simulation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{t: t, network: simnet.New(network), log: &logRecorder{}, config: server, stub: stub}
		s.start()
		client.Target, client.Dial = simAddress, s.network.Dial
		var err error
		if s.client, err = fulmar.NewClient(client); err != nil {
			t.Fatal(err)
		}
		s.api = testservice.NewEchoClient(s.client)
		test(s)
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
		s.stop()
		_ = s.server.Close()
		<-s.served
		s.retired.Wait()
	})
}

// start serves at simAddress, as soon as nobody else does.
func (s *simulation) start() {
	s.t.Helper()
	listener, err := s.network.Listen(simAddress)
	for range 1000 {
		if err == nil {
			break
		}
		time.Sleep(time.Millisecond)
		listener, err = s.network.Listen(simAddress)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	config := s.config
	config.Listener = listener
	config.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	server, err := fulmar.NewServer(config)
	if err != nil {
		s.t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, s.stub)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	s.server, s.stop, s.served = server, cancel, served
	go func() { served <- server.Serve(ctx) }()
}

// restart replaces the server by another one. The old one stops gracefully, or
// at once.
func (s *simulation) restart(gracefully bool) {
	old, stop, served := s.server, s.stop, s.served
	if !gracefully {
		_ = old.Close()
	}
	stop()
	s.retired.Go(func() {
		<-served
		time.Sleep(time.Millisecond) // for writes that failed with the connection
		if left := old.Stats(); left.BufferedBytes != 0 || left.Network.Open != 0 {
			s.t.Errorf("a server that has ended holds %+v", left)
		}
	})
	s.start()
}

// connect opens a raw connection to the server.
func (s *simulation) connect() net.Conn {
	s.t.Helper()
	conn, err := s.network.Dial(context.Background(), "tcp", simAddress)
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// TestServer_ClosesPeersThatAreTooSlow: whatever prefix of a message arrives
// before a peer falls silent, and however slowly it dribbles, its connection is
// closed in time (S4 of the fault scenarios).
func TestServer_ClosesPeersThatAreTooSlow(t *testing.T) {
	call := frame(addCall(t, 1, 1, 2))
	const slack = time.Second
	cases := map[string]struct {
		sent   []byte
		within time.Duration
	}{
		"0 bytes":              {nil, limits.FirstByteTimeout},
		"1 byte":               {call[:1], limits.DetectTimeout},
		"4 bytes":              {call[:4], limits.DetectTimeout},
		"8 bytes":              {call[:8], limits.FrameTimeout},
		"header less 1":        {call[:len("\x00\x00\x00\x00\x80\x01\x00\x01\x00\x00\x00\x03add\x00\x00\x00\x01")-1], limits.FrameTimeout},
		"message less 1":       {call[:len(call)-1], limits.FrameTimeout},
		"1 byte, bare":         {call[4:5], limits.DetectTimeout},
		"8 bytes, bare":        {call[4:12], limits.FrameTimeout},
		"all but 1, bare":      {call[4 : len(call)-1], limits.FrameTimeout},
		"1 MiB declared":       {[]byte{0, 0x10, 0, 0, 0x80, 1, 0, 1}, limits.FrameTimeout + 16*time.Second},
		"nothing after a call": {call, limits.ServerIdleTimeout},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
				conn := s.connect()
				write(t, conn, test.sent)
				took := closedAfter(t, conn, time.Now())
				if took > test.within+slack || took < test.within-slack {
					t.Errorf("closed after %v, want %v", took, test.within)
				}
			})
		})
	}
	t.Run("a byte a second", func(t *testing.T) {
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
			conn := s.connect()
			start := time.Now()
			for _, b := range call {
				if _, err := conn.Write([]byte{b}); err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			took := closedAfter(t, conn, start)
			if took == never || took > limits.DetectTimeout+limits.FrameTimeout+2*time.Second {
				t.Errorf("a dribbling peer was closed after %v", took)
			}
		})
	})
}

// TestServer_SlowHandlersAreNotSlowPeers: time that a handler takes does not
// count against the connection.
func TestServer_SlowHandlersAreNotSlowPeers(t *testing.T) {
	stub := adder()
	stub.OnNothing = func(context.Context) error { time.Sleep(time.Hour); return nil }
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Timeout: -1, MaxConnections: 1}, stub, func(s *simulation) {
		if err := s.api.Nothing(context.Background()); err != nil {
			t.Errorf("a call of an hour: %v", err)
		}
		if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
			t.Errorf("the call after it: %d, %v", sum, err)
		}
	})
}

// TestServer_IsNotIdleWhileAnAnswerIsRead: a long answer may take a slow peer
// longer than IdleTimeout, which begins when all of it has left.
func TestServer_IsNotIdleWhileAnAnswerIsRead(t *testing.T) {
	const perSecond, timeout = 64 << 10, 5 * time.Second
	for _, length := range []int{limits.UnsentBytes / 2, limits.UnsentBytes * 2} {
		stub := &testservice.Stub{OnVersion: func(context.Context) (string, error) { return strings.Repeat("x", length), nil }}
		simulate(t, simnet.Config{BufferBytes: perSecond}, fulmar.ServerConfig{IdleTimeout: timeout}, fulmar.ClientConfig{}, stub, func(s *simulation) {
			conn := s.connect()
			write(t, conn, frame(message(thriftwire.Call, "version", 1, []byte{0})))
			received, start := 0, time.Now()
			for b := make([]byte, perSecond); received < length; time.Sleep(time.Second) {
				n, err := conn.Read(b)
				if received += n; err != nil {
					t.Errorf("%d bytes of an answer of %d arrived, then after %v %v", received, length, time.Since(start), err)
					break
				}
			}
			if took := closedAfter(t, conn, time.Now()); took < timeout-2*time.Second || took > timeout+time.Second {
				t.Errorf("closed %v after the answer was read, want %v", took, timeout)
			}
		})
	}
}

// TestServer_ReadsNotFarAhead: what a peer sends while a call runs stays in the
// network, but for a part that one connection may hold, and is read afterwards.
func TestServer_ReadsNotFarAhead(t *testing.T) {
	const network, oneRead, calls, length = 16 << 10, 64 << 10, 128, 8 << 10
	var pipelined []byte
	for i := range int32(calls) {
		call := addCall(t, i, i, 1)
		call = append(call[:len(call)-1], 0x0b, 0, 99, 0, 0, length>>8, 0)
		pipelined = append(pipelined, frame(append(call, make([]byte, length+1)...))...)
	}
	var held holder
	stub := held.stub()
	stub.OnAdd = adder().OnAdd
	simulate(t, simnet.Config{BufferBytes: network}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		release := held.begin()
		conn := s.connect()
		write(t, conn, nothingCall())
		synctest.Wait()
		_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
		taken, err := conn.Write(pipelined)
		if !errors.Is(err, os.ErrDeadlineExceeded) || taken < limits.ReadAheadBytes || taken > limits.ReadAheadBytes+oneRead+network {
			t.Errorf("%d bytes were taken while a call ran (%v), want %d and at most %d more", taken, err, limits.ReadAheadBytes, oneRead+network)
		}
		release()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = conn.Write(pipelined[taken:]) }()
		readFrame(t, conn)
		for i := range int32(calls) {
			wantSum(t, conn, i, i+1)
		}
		_ = conn.Close()
	})
}

func TestServer_StopsGracefully(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		stub := adder()
		stub.OnNothing = func(context.Context) error { time.Sleep(10 * time.Second); return nil }
		simulate(t, simnet.Config{Delay: time.Millisecond}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: protocol, Timeout: time.Minute}, stub, func(s *simulation) {
			// An idle connection, one that runs a call, and half a message.
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- s.api.Nothing(context.Background()) }()
			half := s.connect()
			write(t, half, frame(addCall(t, 1, 1, 2))[:10])
			time.Sleep(time.Second)
			start := time.Now()
			s.stop()
			time.Sleep(100 * time.Millisecond)
			if _, err := s.network.Dial(context.Background(), "tcp", simAddress); err == nil {
				t.Error("a stopping server accepted a connection")
			}
			if err := <-result; err != nil {
				t.Errorf("the running call: %v", err)
			}
			if err := <-s.served; err != nil {
				t.Errorf("Serve: %v", err)
			}
			if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
				t.Errorf("stopping took %v, the call needed 9 s more", took)
			}
			s.served <- nil
			_ = half.Close()
		})
	})
}

func TestServer_StopHasALimit(t *testing.T) {
	ended := make(chan error, 1)
	stub := &testservice.Stub{OnNothing: func(ctx context.Context) error {
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{DrainTimeout: 3 * time.Second}, fulmar.ClientConfig{Timeout: time.Minute}, stub, func(s *simulation) {
		result := make(chan error, 1)
		go func() { result <- s.api.Nothing(context.Background()) }()
		time.Sleep(time.Second)
		start := time.Now()
		s.stop()
		err := <-s.served
		if err == nil || !strings.Contains(err.Error(), "1 calls were still running after 3s") {
			t.Errorf("Serve: %v", err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("stopping took %v, the limit is 3 s", took)
		}
		if e := asError(t, <-result); e.Code() != fulmar.Unavailable || e.Executed() != fulmar.ExecutedMaybe {
			t.Errorf("the call that was cut: %v", e)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context ended with %v", err)
		}
		s.served <- nil
	})
}

func TestClient_DefaultDeadline(t *testing.T) {
	stub := &testservice.Stub{OnNothing: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		cases := map[string]struct {
			options []fulmar.CallOption
			ctx     time.Duration
			want    time.Duration
		}{
			"default":             {nil, 0, limits.CallTimeout},
			"an option":           {[]fulmar.CallOption{fulmar.Timeout(time.Second)}, 0, time.Second},
			"a longer option":     {[]fulmar.CallOption{fulmar.Timeout(time.Minute)}, 0, time.Minute},
			"an earlier context":  {[]fulmar.CallOption{fulmar.Timeout(time.Minute)}, 2 * time.Second, 2 * time.Second},
			"off, with a context": {[]fulmar.CallOption{fulmar.Timeout(-1)}, time.Hour, time.Hour},
			"zero has passed":     {[]fulmar.CallOption{fulmar.Timeout(0)}, 0, 0},
		}
		for name, test := range cases {
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if test.ctx > 0 {
				ctx, cancel = context.WithTimeout(ctx, test.ctx)
			}
			start := time.Now()
			err := s.api.Nothing(ctx, test.options...)
			cancel()
			if took := time.Since(start).Round(time.Millisecond); asError(t, err).Code() != fulmar.DeadlineExceeded || took != test.want {
				t.Errorf("%s: %v after %v, want %v", name, err, took, test.want)
			}
		}
	})
}

func TestClient_ConnectTimeout(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		s.network.Partition(simAddress, true)
		start := time.Now()
		_, err := s.api.Add(context.Background(), 1, 2)
		e := asError(t, err)
		if took := time.Since(start); e.Phase() != fulmar.PhaseConnect || e.Executed() != fulmar.ExecutedNo || took != limits.ConnectTimeout || !strings.Contains(err.Error(), "connect timeout of "+limits.ConnectTimeout.String()) {
			t.Errorf("after %v: %v", took, err)
		}
		s.network.Partition(simAddress, false)
		if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
			t.Errorf("after the partition: %v", err)
		}
	})
}

func TestClient_ClosesIdleConnections(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		time.Sleep(limits.ClientIdleTimeout + time.Second)
		synctest.Wait()
		// A peer that is gone is noticed: the server has no connection left, so
		// stopping it takes no time.
		start := time.Now()
		s.stop()
		if err := <-s.served; err != nil || time.Since(start) > time.Second {
			t.Errorf("Serve: %v after %v", err, time.Since(start))
		}
		s.served <- nil
	})
}

// FuzzServer sends arbitrary bytes to a server, cut in two: it must survive, end
// the connection or answer, and serve another client meanwhile. One in two has a handler
// for calls that are unknown, in Protobuf too.
func FuzzServer(f *testing.F) {
	seed := func(s thrift.Struct) []byte {
		b, err := thrift.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	add := message(thriftwire.Call, "add", 1, seed(&testservice.EchoAddArgs{Left: 1, Right: 2}))
	echo := message(thriftwire.Call, "echo", 2, seed(&testservice.EchoEchoArgs{Message: &testservice.Message{Text: "x"}}))
	f.Add(frame(add), 7)
	f.Add(append(bytes.Clone(add), echo...), 30)
	f.Add(append(frame(echo), frame(message(thriftwire.Oneway, "notify", 3, []byte{0}))...), 4)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 2)
	protobuf := protobufMessage(thriftwire.Call, "find", 7, hi)
	f.Add(bytes.Clone(protobuf), 9)
	f.Add(append([]byte{0, 0, 0, 0x26, 0x10, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0}, protobuf...), 22)
	passOn := func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) { return request, nil }
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		config := fulmar.ServerConfig{MaxMessageBytes: 1 << 16}
		if cut%2 != 0 {
			config.UnknownHandler = passOn
		}
		simulate(t, simnet.Config{}, config, fulmar.ClientConfig{}, adder(), func(s *simulation) {
			conn := s.connect()
			cut = min(max(cut, 0), len(b))
			var writer sync.WaitGroup
			writer.Go(func() {
				_, _ = conn.Write(b[:cut])
				time.Sleep(time.Millisecond)
				_, _ = conn.Write(b[cut:])
			})
			_ = conn.SetReadDeadline(time.Now().Add(time.Hour))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection was still open after an hour")
			}
			_ = conn.Close()
			writer.Wait()
			if sum, err := s.api.Add(context.Background(), 1, 2); sum != 3 || err != nil {
				t.Errorf("another client: %d, %v", sum, err)
			}
		})
	})
}
