package fulmar_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// bulk is a message of which no window holds many.
func bulk() *testservice.Item { return &testservice.Item{Name: strings.Repeat("x", 100<<10)} }

// wantStalled checks the error of who sends to somebody who takes nothing.
func wantStalled(t *testing.T, who string, err error) {
	t.Helper()
	var failed *fulmar.Error
	if !errors.As(err, &failed) || failed.Code() != fulmar.DeadlineExceeded || !strings.Contains(err.Error(), "has made no room for a message for 1m0s (limit StreamSendTimeout)") {
		t.Errorf("%s: %v", who, err)
	}
}

// TestStreams_ClientThatTakesNothing: the handler is told, and so is the client, if it looks
// again. Other streams of the connection go on.
func TestStreams_ClientThatTakesNothing(t *testing.T) {
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
				var err error
				for err == nil {
					err = stream.Send(bulk())
				}
				ended <- err
				return err
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{StreamSendTimeout: time.Minute}, fulmar.ClientConfig{})
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			wantStalled(t, way+": the handler", <-ended)
			if took := time.Since(start); took < time.Minute || took > 3*time.Minute {
				t.Errorf("%s: the handler was told after %v", way, took)
			}
			if list, err := s.api.List(t.Context(), &testservice.Item{Count: 1}); err != nil {
				t.Errorf("%s: %v", way, err)
			} else if _, err := list.Recv(); err != nil {
				t.Errorf("%s: another stream: %v", way, err)
			} else {
				list.Cancel()
			}
			for err == nil {
				_, err = swap.Recv()
			}
			wantStalled(t, way+": the client", err)
		})
	}
}

// TestStreams_StalledIsOver: a stream of which a message could not be sent has no later one,
// and has not succeeded, though its handler says so, or goes on.
func TestStreams_StalledIsOver(t *testing.T) {
	for _, way := range directWays {
		for _, size := range []int{100 << 10, 16<<10 - 20} { // a few of the second fill a window, with what is around them
			synctest.Test(t, func(t *testing.T) {
				stalled, sent := make(chan struct{}), int32(0)
				service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
					message := &testservice.Item{Name: strings.Repeat("x", size)}
					for ; stream.Send(message) == nil; message.Count = sent {
						sent++
					}
					close(stalled)
					if _, err := stream.Recv(); err != nil { // until there is room again
						return err
					}
					if err := stream.Send(message); err != io.EOF {
						t.Errorf("%s: a message behind the one that could not be sent: %v", way, err)
					}
					return nil
				}}
				s := newStreaming(t, way, service, fulmar.ServerConfig{StreamSendTimeout: time.Minute}, fulmar.ClientConfig{})
				swap, err := s.api.Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				<-stalled
				for got := range sent {
					if item, err := swap.Recv(); err != nil || item.Count != got {
						t.Fatalf("%s: message %d: %v", way, got, err)
					}
				}
				if err := swap.Send(&testservice.Item{}); err != nil {
					t.Error(err)
				}
				if item, err := swap.Recv(); fulmar.CodeOf(err) != fulmar.Internal {
					t.Errorf("%s: behind %d messages: %v, %v", way, sent, item, err)
				}
			})
		}
	}
}

// TestStreams_ServerThatTakesNothing is the same the other way round.
func TestStreams_ServerThatTakesNothing(t *testing.T) {
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
				<-stream.Context().Done()
				ended <- context.Cause(stream.Context())
				return stream.Context().Err()
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{StreamSendTimeout: time.Minute})
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				err = swap.Send(bulk())
			}
			wantStalled(t, way+": the client", err)
			if err := swap.Send(bulk()); err != io.EOF {
				t.Errorf("%s: behind that: %v", way, err)
			}
			_, err = swap.Recv()
			wantStalled(t, way+": the client that receives", err)
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: the handler was told %v", way, err)
			}
		})
	}
}

// TestStreams_UnreadStopNoOthers: however much waits on streams that nobody reads, at either
// side, others of the connection go on.
func TestStreams_UnreadStopNoOthers(t *testing.T) {
	const unread = 200
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
				go func() {
					for stream.Send(bulk()) == nil {
					}
				}()
				<-stream.Context().Done() // and nothing is received
				return stream.Context().Err()
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{MaxConnections: 1})
			var swaps []fulmar.BidiStreamingClient[testservice.Item, testservice.Item]
			for range unread {
				swap, err := s.api.Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				swaps = append(swaps, swap)
				go func() {
					for swap.Send(bulk()) == nil {
					}
				}()
			}
			synctest.Wait()
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			list, err := s.api.List(ctx, &testservice.Item{Count: 100, Name: strings.Repeat("x", 10<<10)})
			if err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			for n := 0; ; n++ {
				if _, err := list.Recv(); err == io.EOF && n == 100 {
					break
				} else if err != nil {
					t.Errorf("%s: %d messages in %v, and then %v", way, n, time.Since(start), err)
					break
				}
			}
			for _, swap := range swaps {
				swap.Cancel()
			}
		})
	}
}

// TestStreams_SlowHandlers: whatever many streams of one connection send to
// handlers that are busy, all of it arrives, and the server's budget counts what waits.
func TestStreams_SlowHandlers(t *testing.T) {
	const streams, messages, length = 100, 60, 10_000
	for _, way := range []string{"grpc", "ttheader"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { slowHandlers(t, way, streams, messages, length) })
		})
	}
}

func slowHandlers(t *testing.T, way string, streams, messages, length int) {
	service := &feed{fill: func(stream fulmar.ClientStreamingServer[testservice.Item, testservice.Item]) error {
		time.Sleep(3 * limits.StreamPause)
		count := int32(0)
		for _, err := range stream.All() {
			if err != nil {
				return err
			}
			count++
		}
		return stream.SendAndClose(&testservice.Item{Count: count})
	}}
	s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{MaxConnections: 1})
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			fill, err := s.api.Fill(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			for range messages {
				if fill.Send(&testservice.Item{Name: strings.Repeat("x", length)}) != nil {
					break
				}
			}
			if item, err := fill.CloseAndRecv(); err != nil || int(item.Count) != messages {
				t.Errorf("%v, %v", item, err)
			}
		})
	}
	synctest.Wait()
	if held := s.server.Stats().BufferedBytes; way == "ttheader" && held < int64(streams*(limits.StreamWindowBytes-length)) {
		t.Errorf("the budget counts %d bytes of %d windows", held, streams)
	}
	all.Wait()
}

// TestStreams_SlowIsNotStalled: who takes a message now and then is waited for.
func TestStreams_SlowIsNotStalled(t *testing.T) {
	const count = 20
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
				for range count {
					if err := stream.Send(bulk()); err != nil {
						return err
					}
				}
				return nil
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{StreamSendTimeout: 5 * time.Minute}, fulmar.ClientConfig{})
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range count {
				time.Sleep(50 * time.Second)
				if _, err := swap.Recv(); err != nil {
					t.Fatalf("%s: message %d: %v", way, i, err)
				}
			}
			if _, err := swap.Recv(); err != io.EOF {
				t.Errorf("%s: it ends with %v", way, err)
			}
		})
	}
}

// streamSendTimeouts is the row for both sides.
func streamSendTimeouts() []setting {
	return []setting{{7 * time.Second, 7 * time.Second}, {nil, limits.StreamSendTimeout}, {-1, never}}
}

func serverStreams() map[string]field[fulmar.ServerConfig] {
	return map[string]field[fulmar.ServerConfig]{
		"StreamSendTimeout": {
			observe: func(t *testing.T, config fulmar.ServerConfig) (took any) {
				took = never
				synctest.Test(t, func(t *testing.T) {
					failed := make(chan time.Duration, 1)
					service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
						start := time.Now()
						for stream.Send(bulk()) == nil {
						}
						failed <- time.Since(start)
						return nil
					}}
					config.MaxConnectionAge = -1
					s := newStreaming(t, "grpc", service, config, fulmar.ClientConfig{})
					swap, err := s.api.Swap(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer swap.Cancel()
					select {
					case took = <-failed:
					case <-time.After(2 * limits.StreamSendTimeout):
					}
				})
				return took
			},
			settings: streamSendTimeouts(),
		},
	}
}

// observeClientStall returns how long a client waits for a server that takes nothing.
func observeClientStall(t *testing.T, config fulmar.ClientConfig) (took any) {
	synctest.Test(t, func(t *testing.T) {
		service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			<-stream.Context().Done()
			return stream.Context().Err()
		}}
		s := newStreaming(t, "grpc", service, fulmar.ServerConfig{MaxConnectionAge: -1}, config)
		start := time.Now()
		// A deadline would be cut at the server (PeerTimeout).
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*limits.StreamSendTimeout, cancel)
		swap, err := s.api.Swap(ctx)
		for err == nil {
			err = swap.Send(bulk())
		}
		if took = time.Since(start); took.(time.Duration) >= 2*limits.StreamSendTimeout {
			took = never
		}
	})
	return took
}

func clientStalls() map[string]field[fulmar.ClientConfig] {
	return map[string]field[fulmar.ClientConfig]{
		"StreamSendTimeout": {observe: observeClientStall, settings: streamSendTimeouts()},
	}
}

// TestStreams_EndWhileAMessageWaits: how the handler ends is told though it has begun to send
// a message for which there is no room.
func TestStreams_EndWhileAMessageWaits(t *testing.T) {
	for _, way := range directWays {
		for name, end := range map[string]error{"well": nil, "with an error": fulmar.NewError(fulmar.NotFound, "not here")} {
			synctest.Test(t, func(t *testing.T) {
				service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
					go func() {
						for stream.Send(bulk()) == nil {
						}
					}()
					time.Sleep(time.Second)
					return end
				}}
				s := newStreaming(t, way, service, fulmar.ServerConfig{}, fulmar.ClientConfig{})
				swap, err := s.api.Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				for err == nil {
					_, err = swap.Recv()
				}
				// A local stream ends where the handler does: what waited was not sent.
				want := fulmar.CodeOf(end)
				if end == nil && way != "local" {
					want = fulmar.Internal
				}
				if end == nil && way == "local" && err == io.EOF {
					return
				}
				if fulmar.CodeOf(err) != want {
					t.Errorf("%s, %s: %v", way, name, err)
				}
			})
		}
	}
}

// TestStreams_WaitingMessagesAreCounted: what waits until the client takes it counts, until
// the last of it has left, and a stream for whose message there is no room ends. Others of
// the connection go on.
func TestStreams_WaitingMessagesAreCounted(t *testing.T) {
	const streams, length, budget = 8, 1 << 20, 4 << 20
	for _, way := range []string{"grpc", "ttheader"} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, streams)
			service := &feed{list: func(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
				err := error(nil)
				for n := 0; n < int(item.Count) && err == nil; n++ {
					err = stream.Send(&testservice.Item{Name: strings.Repeat("x", length)})
				}
				ended <- err
				return err
			}}
			s := newStreaming(t, way, service, fulmar.ServerConfig{MaxBufferedBytes: budget}, fulmar.ClientConfig{})
			var lists []fulmar.ServerStreamingClient[testservice.Item]
			for range streams {
				list, err := s.api.List(t.Context(), &testservice.Item{Count: 3})
				if err != nil {
					t.Fatal(err)
				}
				lists = append(lists, list)
				time.Sleep(time.Minute)
			}
			if held := s.server.Stats().BufferedBytes; held < budget-2*length || held > budget {
				t.Errorf("%s: %d bytes are held (limit %d)", way, held, budget)
			}
			refused := len(ended)
			if refused < streams-budget/length || refused == streams {
				t.Errorf("%s: %d of %d streams have ended", way, refused, streams)
			}
			for range refused {
				if err := <-ended; fulmar.CodeOf(err) != fulmar.ResourceExhausted || !strings.Contains(err.Error(), "no room for a message of the stream") {
					t.Errorf("%s: the handler was told %v", way, err)
				}
			}
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := swap.Send(&testservice.Item{}); err != nil {
				t.Errorf("%s: another stream: %v", way, err)
			}
			if _, err := swap.Recv(); err != nil {
				t.Errorf("%s: another stream: %v", way, err)
			}
			got := map[fulmar.Code]int{}
			for _, list := range lists {
				err := error(nil)
				for err == nil {
					_, err = list.Recv()
				}
				if err == io.EOF {
					err = nil
				}
				got[fulmar.CodeOf(err)]++
			}
			if got[0] != streams-refused || got[fulmar.ResourceExhausted] != refused {
				t.Errorf("%s: streams ended with %v", way, got)
			}
			swap.Cancel()
			synctest.Wait()
			if held := s.server.Stats().BufferedBytes; held != 0 {
				t.Errorf("%s: %d bytes are held afterwards", way, held)
			}
		})
	}
}
