package fulmar_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/observe"
)

// refuseAll starts a server at an address that executes nothing: it answers with code.
func (s *several) refuseAll(code fulmar.Code, address string, calls *atomic.Int64) {
	s.t.Helper()
	listener, err := s.network.Listen(address)
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := fulmar.NewServer(fulmar.ServerConfig{Listener: listener, Interceptors: []fulmar.UnaryInterceptor{
		func(context.Context, fulmar.Unary, fulmar.UnaryNext) error {
			calls.Add(1)
			return fulmar.NewError(code, "not now")
		},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, &testservice.Stub{})
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(context.Background()) }()
	s.stops[address] = func() { _ = server.Close(); <-served; delete(s.stops, address) }
}

// TestInstances_RefusedCallsGoElsewhere: a server that stops has not executed what it
// refuses, so another one may. One that is overloaded neither, but if all are, that must
// not double what they get; and other codes are answers.
func TestInstances_RefusedCallsGoElsewhere(t *testing.T) {
	const calls = 1000
	for code, least := range map[fulmar.Code]int{fulmar.Unavailable: calls, fulmar.ResourceExhausted: calls * limits.RetryPercent / 200, fulmar.PermissionDenied: 0} {
		t.Run(code.String(), func(t *testing.T) {
			retried := 0
			observer := observe.Observer{Event: func(_ *observe.Call, _ any, event observe.Event) {
				if event.Phase == observe.PhaseRetried {
					retried++
				}
			}}
			withSeveral(t, 2, fulmar.ClientConfig{Observers: []observe.Observer{observer}}, func(s *several) {
				retried = 0
				var asked atomic.Int64
				for _, address := range s.addresses {
					s.refuseAll(code, address, &asked)
				}
				twice := 0
				for range calls {
					e := asError(t, s.api.Nothing(context.Background()))
					if e.Code() != code || e.Origin() != fulmar.OriginRemote {
						t.Fatal(e)
					}
					if strings.Contains(e.Error(), "before that server") && strings.Contains(e.Error(), "not now") {
						twice++
					}
				}
				if twice != int(asked.Load())-calls || twice < least || twice > calls || retried != twice {
					t.Errorf("%d of %d calls were tried twice (%d say so, observers heard of %d), want %d", asked.Load()-calls, calls, twice, retried, least)
				}
				if most := calls*limits.RetryPercent/100 + limits.RetriesSaved; code == fulmar.ResourceExhausted && twice > most {
					t.Errorf("%d calls were tried twice, at most %d may", twice, most)
				}
				if code == fulmar.PermissionDenied && twice != 0 {
					t.Errorf("%d answers were not taken", twice)
				}
				// One that serves makes up for one that does not, as long as that is seldom.
				s.stops[s.addresses[0]]()
				// The client has to know: what it sends on a connection that is closed just
				// then may be executed, and is not tried again.
				synctest.Wait()
				stub, _ := whoServes()
				s.serve(stub, s.addresses[0])
				failed := 0
				for range calls {
					if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
						failed++
					}
				}
				if code == fulmar.Unavailable && failed > 0 {
					t.Errorf("%d calls failed although one server serves", failed)
				}
			})
		})
	}
}

// TestInstances_WhoFailsIsLeftAlone: a server that refuses all calls because it stops costs
// a second attempt each, so it gets none after a while.
func TestInstances_WhoFailsIsLeftAlone(t *testing.T) {
	withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
		var asked atomic.Int64
		s.refuseAll(fulmar.Unavailable, s.addresses[0], &asked)
		stub, _ := whoServes()
		s.serve(stub, s.addresses[1:]...)
		s.add(400)
		if before := asked.Load(); before < limits.EjectConsecutive || before > 2*limits.EjectConsecutive || s.client.Stats().Ejected != 1 {
			t.Errorf("%d calls went to who fails, %d are ejected", before, s.client.Stats().Ejected)
		}
	})
}

// TestInstances_WhoErrsIsLeftAlone: so is one that answers everything with an error of its
// own, if the others do not; one that has enough to do is not.
func TestInstances_WhoErrsIsLeftAlone(t *testing.T) {
	for _, test := range []struct {
		code    fulmar.Code
		errs    int // of the three servers
		ejected int
	}{
		{code: fulmar.Internal, errs: 1, ejected: 1},
		{code: fulmar.Unknown, errs: 1, ejected: 1},
		{code: fulmar.DataLoss, errs: 1, ejected: 1},
		// At once, so that it is not the time of the caller that is over.
		{code: fulmar.DeadlineExceeded, errs: 1, ejected: 1},
		{code: fulmar.DeadlineExceeded, errs: 3},
		{code: fulmar.Canceled, errs: 1},
		{code: fulmar.Internal, errs: 3},
		{code: fulmar.NotFound, errs: 1},
		{code: fulmar.ResourceExhausted, errs: 1},
	} {
		t.Run(fmt.Sprintf("%d of 3 %s", test.errs, test.code), func(t *testing.T) {
			withSeveral(t, 3, fulmar.ClientConfig{}, func(s *several) {
				var asked atomic.Int64
				for _, address := range s.addresses[:test.errs] {
					s.refuseAll(test.code, address, &asked)
				}
				stub, _ := whoServes()
				s.serve(stub, s.addresses[test.errs:]...)
				for range 400 {
					_, _ = s.api.Add(context.Background(), 1, 2)
				}
				if s.client.Stats().Ejected != test.ejected {
					t.Errorf("%d calls went to who errs, %d are ejected", asked.Load(), s.client.Stats().Ejected)
				}
			})
		})
	}
}
