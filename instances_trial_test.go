package fulmar_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// withOneToTry runs test, in each protocol, with three instances, of which the first has
// refused connections, or failed. It works again, and its pause is over: the next attempt
// tries it. count says who has served calls since then.
func withOneToTry(t *testing.T, protocols []fulmar.Protocol, test func(s *several, count func() map[string]int)) {
	t.Helper()
	for _, protocol := range protocols {
		for _, refuses := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, refuses %v", protocol, refuses), func(t *testing.T) {
				withSeveral(t, 3, fulmar.ClientConfig{Protocol: protocol}, func(s *several) {
					stub, count := whoServes()
					stub.OnNotify = func(context.Context, string) error { return nil }
					var broken atomic.Bool
					works := stub.OnAdd
					stub.OnAdd = func(ctx context.Context, left, right int32) (int32, error) {
						if call, _ := fulmar.CallFrom(ctx); broken.Load() && call.Local() == s.addresses[0] {
							return 0, fulmar.NewError(fulmar.Unavailable, "broken")
						}
						return works(ctx, left, right)
					}
					serve := func(addresses ...string) {
						s.serveAny(func(registrar fulmar.Registrar) {
							testservice.RegisterEchoServer(registrar, stub)
							testservice.RegisterFeedServer(registrar, lasting())
						}, addresses...)
					}
					serve(s.addresses[1:]...)
					if !refuses {
						broken.Store(true)
						serve(s.addresses[0])
					}
					for s.client.Stats().Ejected == 0 {
						_, _ = s.api.Add(context.Background(), 1, 2)
					}
					broken.Store(false)
					if refuses {
						serve(s.addresses[0])
					}
					time.Sleep(limits.EjectPauseMin)
					count()
					test(s, count)
				})
			})
		}
	}
}

// TestInstances_StreamsTryWhenTheyOpen: one that was opened at an instance that was left
// alone shows that it is back, and not only at its end, which may be far away.
func TestInstances_StreamsTryWhenTheyOpen(t *testing.T) {
	withOneToTry(t, []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC}, func(s *several, count func() map[string]int) {
		var e policy.Explanation
		list, err := testservice.NewFeedClient(s.client).List(s.t.Context(), &testservice.Item{}, fulmar.Explain(&e))
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Len() != 1 || e.At(0).Instance != s.addresses[0] {
			s.t.Fatalf("it was no trial: %v", &e)
		}
		if n := s.client.Stats().Ejected; n != 0 {
			s.t.Errorf("%d are ejected while the stream lasts", n)
		}
		s.add(160)
		if calls := count(); calls[s.addresses[0]] == 0 {
			s.t.Errorf("calls beside the stream went to %v", calls)
		}
		list.Cancel()
		synctest.Wait()
		if n := s.client.Stats().Ejected; n != 0 {
			s.t.Errorf("%d are ejected behind the stream", n)
		}
	})
}

// TestInstances_OnewayCallsTry: that one could be written shows that an instance is back,
// although nobody answers it: it is all that one can show.
func TestInstances_OnewayCallsTry(t *testing.T) {
	withOneToTry(t, []fulmar.Protocol{fulmar.TTHeader}, func(s *several, count func() map[string]int) {
		if err := s.api.Notify(context.Background(), "x"); err != nil {
			s.t.Fatal(err)
		}
		if n := s.client.Stats().Ejected; n != 0 {
			s.t.Errorf("%d are ejected behind the trial", n)
		}
		s.add(160)
		if calls := count(); calls[s.addresses[0]] == 0 {
			s.t.Errorf("calls behind the trial went to %v", calls)
		}
	})
}
