package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// grpcScript is the server's side of a connection, which a test answers on.
type grpcScript struct {
	net.Conn
	http2 *http2.Conn
	pool  *linkbuf.Pool
	began time.Time
	// number counts connections from 0.
	number int
}

func (s *grpcScript) now() http2.Nanoseconds { return http2.Nanoseconds(time.Since(s.began)) }

// send sends what waits.
func (s *grpcScript) send() {
	out := s.http2.Swap(linkbuf.New(s.pool))
	defer out.Release()
	for _, piece := range out.Slices(nil) {
		_, _ = s.Write(piece)
	}
}

// answer ends a call with a message and a status.
func (s *grpcScript) answer(id uint32, message, status string) {
	_ = s.http2.Headers(id, []http2.Field{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}}, false)
	_, _ = s.http2.Data(id, framedMessage(message), false)
	_ = s.http2.Headers(id, []http2.Field{{Name: "grpc-status", Value: status}}, true)
	s.http2.Release(id)
}

func framedMessage(message string) []byte {
	b := make([]byte, grpc.PrefixSize, grpc.PrefixSize+len(message))
	grpc.PutPrefix(b, len(message), false)
	return append(b, message...)
}

// serve gives what happens to handle, and sends what that leaves, until the connection
// ends.
func (s *grpcScript) serve(handle func(s *grpcScript, event *http2.Event)) {
	s.send()
	var unread []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := s.Read(buffer)
		if err != nil {
			return
		}
		unread = append(unread, buffer[:n]...)
		for {
			event, used, _, err := s.http2.Next(unread, s.now())
			if err != nil {
				return
			}
			if event.Kind == http2.EventNone && used == 0 {
				break
			}
			handle(s, &event)
			unread = unread[used:]
		}
		s.send()
	}
}

// newScriptedPeer returns a Peer whose server is accept, called for each connection.
func newScriptedPeer(t testing.TB, config PoolConfig, accept func(s *grpcScript)) *Peer {
	t.Helper()
	network := simnet.New(simnet.Config{})
	listener, err := network.Listen("server")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for number := 0; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				pool := linkbuf.NewPool()
				s := &grpcScript{Conn: conn, pool: pool, began: time.Now(), number: number}
				s.http2 = http2.NewConn(http2.Config{Streams: config.Waiting}, pool, 0)
				accept(s)
				s.http2.Close()
				_ = conn.Close()
			})
		}
	})
	config.Dial = func(ctx context.Context) (*eventloop.Conn, error) {
		conn, err := network.Dial(ctx, "tcp", "server")
		if err != nil {
			return nil, err
		}
		return eventloop.NewConn(conn, eventloop.Config{ReadBufferBytes: HTTP2ReadBufferBytes}), nil
	}
	config.Protocol, config.Waiting, config.Authority = wire.GRPC, 1000, "server"
	if config.Limits = limits.DefaultMessage(); config.Connections == 0 {
		config.Connections = 10
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = time.Second
	}
	peer := NewPeer(config)
	t.Cleanup(func() {
		peer.Close()
		_ = listener.Close()
		group.Wait()
	})
	return peer
}

// scripted is newScriptedPeer for servers that obey HTTP/2.
func scripted(t testing.TB, config PoolConfig, handle func(s *grpcScript, event *http2.Event)) *Peer {
	return newScriptedPeer(t, config, func(s *grpcScript) { s.serve(handle) })
}

// grpcDo makes a call with a message, and returns the answer.
func grpcDo(ctx context.Context, peer *Peer, message string) (string, error) {
	request, err := peer.NewRequest(Method{Name: "m", Qualified: "m", Payload: wire.PayloadProtobuf}, RequestHead{Service: "s"})
	if err != nil {
		return "", err
	}
	defer request.Release()
	request.Body().AppendString(message)
	response, err := peer.Do(ctx, request)
	if err != nil {
		return "", err
	}
	defer response.Release()
	if response.Status != nil {
		return "", &grpc.Error{Code: grpc.Code(response.Status.Code), Detail: response.Status.Message}
	}
	return string(response.Body), nil
}

func goAway(last uint32) []byte {
	b := make([]byte, http2.FrameHeaderSize+8)
	http2.PutFrameHeader(b, 8, http2.FrameGoAway, 0, 0)
	b[http2.FrameHeaderSize+3] = byte(last)
	return b
}

// TestGRPC_CallsThatTheServerDidNotSee are made again, also several at a time, where the
// server takes them.
func TestGRPC_CallsThatTheServerDidNotSee(t *testing.T) {
	for name, refuse := range map[string]func(s *grpcScript, id uint32){
		"GOAWAY":         func(s *grpcScript, _ uint32) { _, _ = s.Write(goAway(0)) },
		"REFUSED_STREAM": func(s *grpcScript, id uint32) { s.http2.Reset(id, http2.RefusedStream) },
		"of a few": func(s *grpcScript, id uint32) {
			if s.number == 0 && id > 3 {
				_, _ = s.Write(goAway(3))
				s.answer(1, "a", "0")
				s.answer(3, "a", "0")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refused atomic.Int32 // A retry may be answered before the script has come back from its last refusal.
				peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
					if event.Kind != http2.EventData || !event.End {
						return
					}
					if s.number == 0 && refused.Load() < 3 {
						refused.Add(1)
						refuse(s, event.Stream)
						return
					}
					s.answer(event.Stream, "a", "0")
				})
				var group sync.WaitGroup
				for range 3 {
					group.Go(func() {
						if got, err := grpcDo(t.Context(), peer, "q"); got != "a" || err != nil {
							t.Errorf("%q, %v", got, err)
						}
					})
				}
				group.Wait()
				if refused.Load() == 0 {
					t.Error("no call was refused")
				}
			})
		})
	}
}

func TestGRPC_RefusedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
			if event.Kind == http2.EventHeaders {
				calls++
				s.http2.Reset(event.Stream, http2.RefusedStream)
				s.http2.Release(event.Stream)
			}
		})
		_, err := grpcDo(t.Context(), peer, "q")
		failed := new(CallError)
		if !errors.As(err, &failed) || failed.Sent {
			t.Errorf("got %v", err)
		}
		if calls != 1+limits.GRPCRetries {
			t.Errorf("the call was made %d times, want %d", calls, 1+limits.GRPCRetries)
		}
	})
}

// TestGRPC_StreamsOfTheServer: calls wait for each other where the server takes one at a
// time.
func TestGRPC_StreamsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		peer := newScriptedPeer(t, PoolConfig{Connections: 1}, func(s *grpcScript) {
			s.http2.Close()
			s.http2 = http2.NewConn(http2.Config{Streams: 1}, s.pool, 0)
			s.serve(func(s *grpcScript, event *http2.Event) {
				switch {
				case event.Kind == http2.EventHeaders:
					running++
					most = max(most, running)
				case event.Kind == http2.EventData && event.End:
					running--
					s.answer(event.Stream, "a", "0")
				}
			})
		})
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if _, err := grpcDo(t.Context(), peer, "q"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if most != 1 || peer.Stats().Connections != 1 {
			t.Errorf("%d calls at a time on %d connections", most, peer.Stats().Connections)
		}
	})
}

// TestGRPC_GivenUp: a call that waits no longer resets its stream, whatever it waited for.
func TestGRPC_GivenUp(t *testing.T) {
	for name, message := range map[string]string{"for the reply": "q", "for the window": strings.Repeat("q", 200_000)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resets, whole := 0, false
				peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
					switch event.Kind {
					case http2.EventReset:
						if event.Code != http2.Cancel {
							t.Errorf("code %v", event.Code)
						}
						resets++
						s.http2.Release(event.Stream)
					case http2.EventData:
						whole = whole || event.End
					}
				})
				for _, deadline := range []bool{true, false} {
					ctx, cancel := context.WithCancel(t.Context())
					if deadline {
						ctx, cancel = context.WithTimeout(t.Context(), time.Second)
					} else {
						time.AfterFunc(time.Second, cancel)
					}
					start := time.Now()
					_, err := grpcDo(ctx, peer, message)
					synctest.Wait()
					failed := new(CallError)
					if !errors.As(err, &failed) || failed.Sent != whole || time.Since(start) != time.Second {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
					cancel()
				}
				synctest.Wait()
				if stats := peer.Stats(); resets != 2 || stats.Connections != 1 {
					t.Errorf("%d resets, %+v", resets, stats)
				}
				for _, conn := range peer.grpc.conns {
					c := conn.(*grpcConn)
					if len(c.calls) != 0 || c.http2.Streams() != 0 || c.http2.Unsent() != 0 {
						t.Error("something is left of the calls")
					}
				}
			})
		})
	}
}

// badReply is what a server says instead of an answer, and what the call fails with.
type badReply struct {
	code  grpc.Code
	text  string
	reply func(s *grpcScript, id uint32)
}

func badReplies() map[string]badReply {
	header := func(s *grpcScript, id uint32, end bool, fields ...http2.Field) {
		_ = s.http2.Headers(id, append([]http2.Field{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}}, fields...), end)
	}
	return map[string]badReply{
		"no status": {grpc.Internal, "without a status", func(s *grpcScript, id uint32) {
			header(s, id, false)
			_, _ = s.http2.Data(id, framedMessage("a"), true)
		}},
		// A status in front of a message does not count.
		"a status too early": {grpc.Internal, "without a status", func(s *grpcScript, id uint32) {
			header(s, id, false, http2.Field{Name: "grpc-status", Value: "9"}, http2.Field{Name: "grpc-message", Value: "early"})
			_, _ = s.http2.Data(id, framedMessage("a"), true)
		}},
		"no message": {grpc.Unimplemented, "without a message", func(s *grpcScript, id uint32) {
			header(s, id, true, http2.Field{Name: "grpc-status", Value: "0"})
		}},
		"half a message": {grpc.Internal, "within its message", func(s *grpcScript, id uint32) {
			header(s, id, false)
			_, _ = s.http2.Data(id, framedMessage("abc")[:6], false)
			_ = s.http2.Headers(id, []http2.Field{{Name: "grpc-status", Value: "0"}}, true)
		}},
		"two messages": {grpc.Unimplemented, "more than one", func(s *grpcScript, id uint32) {
			header(s, id, false)
			_, _ = s.http2.Data(id, append(framedMessage("a"), framedMessage("b")...), false)
		}},
		"a long message": {grpc.ResourceExhausted, "limit", func(s *grpcScript, id uint32) {
			header(s, id, false)
			_, _ = s.http2.Data(id, []byte{0, 0xff, 0xff, 0xff, 0xff}, false)
		}},
		"flags": {grpc.Internal, "flags", func(s *grpcScript, id uint32) {
			header(s, id, false)
			_, _ = s.http2.Data(id, []byte{7, 0, 0, 0, 0}, false)
		}},
		"an unknown encoding": {grpc.Internal, "snappy", func(s *grpcScript, id uint32) {
			header(s, id, false, http2.Field{Name: "grpc-encoding", Value: "snappy"})
			_, _ = s.http2.Data(id, []byte{1, 0, 0, 0, 1, 7}, false)
			_ = s.http2.Headers(id, []http2.Field{{Name: "grpc-status", Value: "0"}}, true)
		}},
		"no gzip": {grpc.Internal, "compressed", func(s *grpcScript, id uint32) {
			header(s, id, false, http2.Field{Name: "grpc-encoding", Value: "gzip"})
			_, _ = s.http2.Data(id, []byte{1, 0, 0, 0, 1, 7}, false)
			_ = s.http2.Headers(id, []http2.Field{{Name: "grpc-status", Value: "0"}}, true)
		}},
		"a status that is none": {grpc.Unknown, "no number", func(s *grpcScript, id uint32) {
			header(s, id, true, http2.Field{Name: "grpc-status", Value: "fine"})
		}},
		"a proxy": {grpc.Unavailable, "HTTP status 503", func(s *grpcScript, id uint32) {
			_ = s.http2.Headers(id, []http2.Field{{Name: ":status", Value: "503"}, {Name: "content-type", Value: "text/html"}}, false)
			_, _ = s.http2.Data(id, []byte("<h1>Sorry</h1>"), true)
		}},
		"long headers": {grpc.ResourceExhausted, "longer than", func(s *grpcScript, id uint32) {
			// The state machine would not send them.
			fields := []http2.Field{{Name: ":status", Value: "200"}}
			for i := range 40 {
				fields = append(fields, http2.Field{Name: fmt.Sprint("a", i), Value: strings.Repeat("*", 500)})
			}
			block := http2.NewHeaderWriter().Write(fields)
			first := make([]byte, http2.FrameHeaderSize, 30<<10)
			http2.PutFrameHeader(first, 10<<10, http2.FrameHeaders, http2.FlagEndStream, id)
			first = append(first, block[:10<<10]...)
			next := make([]byte, http2.FrameHeaderSize)
			http2.PutFrameHeader(next, len(block)-10<<10, http2.FrameContinuation, http2.FlagEndHeaders, id)
			_, _ = s.Write(append(append(first, next...), block[10<<10:]...))
		}},
		"a reset": {grpc.Internal, "INTERNAL_ERROR", func(s *grpcScript, id uint32) { s.http2.Reset(id, http2.InternalError) }},
	}
}

// TestGRPC_BadServers: whatever a server says instead of an answer is an error with a code,
// of that call only if it can be.
func TestGRPC_BadServers(t *testing.T) {
	for name, c := range badReplies() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
					if event.Kind == http2.EventData && event.End {
						if event.Stream == 1 {
							c.reply(s, 1)
						} else {
							s.answer(event.Stream, "fine", "0")
						}
						s.http2.Release(event.Stream)
					}
				})
				_, err := grpcDo(t.Context(), peer, "q")
				failed := new(grpc.Error)
				if !errors.As(err, &failed) || failed.Code != c.code || !strings.Contains(failed.Detail, c.text) {
					t.Errorf("got %v, want code %d and %q", err, c.code, c.text)
				}
				if name == "long headers" {
					return
				}
				if got, err := grpcDo(t.Context(), peer, "q"); got != "fine" || err != nil || peer.Stats().Connections != 1 {
					t.Errorf("the next call: %q, %v, %+v", got, err, peer.Stats())
				}
			})
		})
	}
}

// TestGRPC_OtherServers: what is no server of HTTP/2, or says nothing, is an error of
// connecting.
func TestGRPC_OtherServers(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		accept func(s *grpcScript)
		took   time.Duration
	}{
		"HTTP/1.1": {"does not speak HTTP/2", func(s *grpcScript) {
			_, _ = io.WriteString(s, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, s)
		}, 0},
		"silence": {"within the connect timeout", func(s *grpcScript) { _, _ = io.Copy(io.Discard, s) }, time.Second},
		"closed":  {"closed the connection", func(s *grpcScript) { _, _ = s.Read(make([]byte, 1<<10)) }, 0},
		"GOAWAY at once": {"takes no calls", func(s *grpcScript) {
			s.send()
			_, _ = s.Write(goAway(0))
			_, _ = io.Copy(io.Discard, s)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := newScriptedPeer(t, PoolConfig{}, c.accept)
				start := time.Now()
				_, err := grpcDo(t.Context(), peer, "q")
				failed := new(CallError)
				if !errors.As(err, &failed) || failed.Phase != PhaseConnect || failed.Sent || !failed.Refused || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, %+v", err, failed)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("after %v, want %v", took, c.took)
				}
				synctest.Wait()
				if open := peer.Stats().Connections; open != 0 {
					t.Errorf("%d connections are left", open)
				}
			})
		})
	}
}

// TestGRPC_BothKnowTheDeadline: a server that gives a call up at its deadline may be heard
// before the timer of the client runs. That is the deadline too, and no cancellation.
func TestGRPC_BothKnowTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
			if event.Kind != http2.EventData || !event.End {
				return
			}
			if event.Stream > 1 || s.number > 0 {
				time.Sleep(time.Second)
			}
			s.http2.Reset(event.Stream, http2.Cancel)
		})
		if _, err := grpcDo(deadlineContext{t.Context(), time.Now().Add(time.Second)}, peer, "q"); grpcCode(err) != grpc.Canceled {
			t.Errorf("a reset before the deadline: %v", err)
		}
		for range 200 {
			_, err := grpcDo(deadlineContext{t.Context(), time.Now().Add(time.Second)}, peer, "q")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a reset at the deadline: %v", err)
			}
		}
	})
}

// grpcCode returns the code that a call failed with.
func grpcCode(err error) grpc.Code {
	if failed := new(grpc.Error); errors.As(err, &failed) {
		return failed.Code
	}
	return 0
}

// TestGRPC_ConnectionLost: calls fail, and those whose requests were written may have run.
func TestGRPC_ConnectionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := scripted(t, PoolConfig{}, func(s *grpcScript, event *http2.Event) {
			if event.Kind == http2.EventData && event.End {
				_ = s.Close()
			}
		})
		_, err := grpcDo(t.Context(), peer, "q")
		failed := new(CallError)
		if !errors.As(err, &failed) || !failed.Sent || failed.Phase != PhaseWait {
			t.Errorf("got %v, %+v", err, failed)
		}
	})
}

// TestGRPC_Ping: a server that says nothing while a call waits is asked, and the call fails
// if it does not answer.
func TestGRPC_Ping(t *testing.T) {
	for name, stopped := range map[string]bool{"answers": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quit := make(chan struct{})
				peer := scripted(t, PoolConfig{Ping: 2 * time.Second}, func(s *grpcScript, event *http2.Event) {
					switch {
					case event.Kind != http2.EventData:
					case event.Stream == 1:
						s.answer(1, "a", "0")
					case stopped:
						<-quit
					}
				})
				defer close(quit)
				if _, err := grpcDo(t.Context(), peer, "q"); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				_, err := grpcDo(ctx, peer, "q")
				took, want := time.Since(start), time.Minute
				if stopped {
					want = 2*time.Second + limits.HTTP2AnswerTimeout
				}
				if err == nil || took != want {
					t.Errorf("after %v, want %v: %v", took, want, err)
				}
			})
		})
	}
}

// TestGRPC_IdleAndOld: a connection without calls is closed after a time, and one that is
// old behind its last call.
func TestGRPC_IdleAndOld(t *testing.T) {
	for name, config := range map[string]PoolConfig{"idle": {IdleTimeout: time.Minute}, "old": {Age: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := 0
				peer := newScriptedPeer(t, config, func(s *grpcScript) {
					s.serve(func(s *grpcScript, event *http2.Event) {
						if event.Kind == http2.EventData && event.End {
							s.answer(event.Stream, "a", "0")
						}
						if event.Kind == http2.EventGoAway {
							ended++
						}
					})
				})
				if _, err := grpcDo(t.Context(), peer, "q"); err != nil {
					t.Fatal(err)
				}
				if err := peer.WarmUp(t.Context()); err != nil || peer.Stats().Shared != 1 {
					t.Errorf("%v, %+v", err, peer.Stats())
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if ended != 1 || peer.Stats().Connections != 0 {
					t.Errorf("%d said that they end, %+v", ended, peer.Stats())
				}
				if _, err := grpcDo(t.Context(), peer, "q"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
