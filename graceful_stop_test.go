package fulmar_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// TestServer_ServesACallThatIsOnItsWayWhenItStops, of a peer that cannot be told of the
// stop. The answer is the last one: the connection ends with it.
func TestServer_ServesACallThatIsOnItsWayWhenItStops(t *testing.T) {
	for name, before := range map[string][]byte{"first": nil, "next": frame(addCall(t, 1, 1, 2))} {
		t.Run(name, func(t *testing.T) {
			simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
				conn := s.connect()
				if before != nil {
					write(t, conn, before)
					wantSum(t, conn, 1, 3)
				}
				synctest.Wait() // The server has the connection.
				start := time.Now()
				s.stop()
				const late = limits.StopGrace / 2
				time.Sleep(late)
				write(t, conn, frame(addCall(t, 2, 3, 4)))
				wantSum(t, conn, 2, 7)
				wantEnd(t, conn)
				if err := <-s.served; err != nil || time.Since(start) != late {
					t.Errorf("Serve returned %v after %v, want it after %v", err, time.Since(start), late)
				}
				s.served <- nil
			})
		})
	}
}

// TestServer_OnewayIsNotTheLastCallOfAConnection: nobody waits for an answer to it, so
// the next call may come behind it.
func TestServer_OnewayIsNotTheLastCallOfAConnection(t *testing.T) {
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, adder(), func(s *simulation) {
		conn := s.connect()
		write(t, conn, frame(addCall(t, 1, 1, 2)))
		wantSum(t, conn, 1, 3)
		s.stop()
		time.Sleep(limits.StopGrace / 4)
		write(t, conn, frame(message(thriftwire.Oneway, "notify", 2, []byte{0})))
		time.Sleep(limits.StopGrace / 4)
		write(t, conn, frame(addCall(t, 3, 3, 4)))
		wantSum(t, conn, 3, 7)
		wantEnd(t, conn)
	})
}

// toolFeed is one for tools, whose streams end with the server.
type toolFeed struct{ *feed }

func (toolFeed) ServesTools() {}

// TestServer_EndsStreamsOfToolsWhenItStops: a handler that receives finds the end of what is
// sent, behind what has arrived, and one that waits finds the end of its context. It is so
// as soon as the stop begins, and for streams that come while it goes on.
func TestServer_EndsStreamsOfToolsWhenItStops(t *testing.T) {
	service := toolFeed{&feed{
		swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			for item, err := range stream.All() {
				if err := errors.Join(err, stream.Send(item)); err != nil {
					return err
				}
			}
			return stream.Send(&testservice.Item{Name: "last"})
		},
		list: func(_ *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
			<-stream.Context().Done()
			return stream.Send(&testservice.Item{Name: "last"})
		},
	}}
	for _, way := range []string{"grpc", "ttheader", "local"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStreamingOf(t, way, func(s *fulmar.Server) { testservice.RegisterFeedServer(s, service) }, fulmar.ServerConfig{}, fulmar.ClientConfig{})
				swap, err := s.api.Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				list, err := s.api.List(t.Context(), &testservice.Item{})
				if err != nil {
					t.Fatal(err)
				}
				if err := swap.Send(&testservice.Item{Name: "first"}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				start := time.Now()
				stopped := make(chan error, 1)
				go func() { stopped <- s.stop() }()
				for _, want := range []string{"first", "last"} {
					if item, err := swap.Recv(); err != nil || item.Name != want {
						t.Errorf("%v, %v, want %s", item, err, want)
					}
				}
				if item, err := list.Recv(); err != nil || item.Name != "last" {
					t.Errorf("the one that waits: %v, %v", item, err)
				}
				for _, recv := range []func() (*testservice.Item, error){swap.Recv, list.Recv} {
					if item, err := recv(); err != io.EOF {
						t.Errorf("in the end: %v, %v", item, err)
					}
				}
				if err := <-stopped; err != nil || time.Since(start) > limits.StopGrace {
					t.Errorf("Serve returned %v after %v", err, time.Since(start))
				}
			})
		})
	}
}
