package fulmar_test

import (
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

// TestServer_EndsStreamsOfToolsWhenItStops: a handler that receives is told of the stop,
// behind what has arrived, and one that waits finds the end of its context, both as soon as
// the stop begins. No handler takes it for the end of what the caller sends: a stream whose
// first message has not come is not one without messages, which would be Unimplemented.
func TestServer_EndsStreamsOfToolsWhenItStops(t *testing.T) {
	service := toolFeed{&feed{
		swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			for item, err := range stream.All() {
				if err != nil {
					return err
				}
				if err := stream.Send(item); err != nil {
					return err
				}
			}
			return nil
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
				silent, err := s.client.OpenStream(t.Context(), testservice.FeedServiceDesc.Methods[0]) // List
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
				if item, err := swap.Recv(); err != nil || item.Name != "first" {
					t.Errorf("what had arrived: %v, %v", item, err)
				}
				if item, err := list.Recv(); err != nil || item.Name != "last" {
					t.Errorf("the one that waits: %v, %v", item, err)
				}
				if item, err := list.Recv(); err != io.EOF {
					t.Errorf("the one that waits, in the end: %v, %v", item, err)
				}
				for name, recv := range map[string]func() error{
					"the one that receives": func() error { _, err := swap.Recv(); return err },
					"without a message":     func() error { return silent.Recv(&testservice.Item{}) },
				} {
					if err := recv(); fulmar.CodeOf(err) != fulmar.Unavailable {
						t.Errorf("%s ends with %v", name, err)
					}
				}
				if err := <-stopped; err != nil || time.Since(start) > limits.StopGrace {
					t.Errorf("Serve returned %v after %v", err, time.Since(start))
				}
			})
		})
	}
}
