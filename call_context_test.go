package fulmar_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// contexts are the context of a call and the one of package context that it
// stands for, with the function that ends the call.
func contexts() map[string]func(parent context.Context, deadline time.Time) (context.Context, func()) {
	return map[string]func(context.Context, time.Time) (context.Context, func()){
		"call": fulmar.NewCallContext,
		"standard": func(parent context.Context, deadline time.Time) (context.Context, func()) {
			if deadline.IsZero() {
				ctx, cancel := context.WithCancel(parent)
				return ctx, cancel
			}
			ctx, cancel := context.WithDeadline(parent, deadline)
			return ctx, cancel
		},
	}
}

// TestCallContext_EndsLikeTheStandardOne: whatever ends it, whoever waits for it,
// and however early they began to.
func TestCallContext_EndsLikeTheStandardOne(t *testing.T) {
	endings := map[string]struct {
		end  func(finish, cancelParent func())
		want error
	}{
		"the call ends":    {func(finish, _ func()) { finish() }, context.Canceled},
		"the parent ends":  {func(_, cancelParent func()) { cancelParent() }, context.Canceled},
		"the time is over": {func(_, _ func()) { time.Sleep(time.Minute) }, context.DeadlineExceeded},
	}
	for name, ending := range endings {
		for kind, make := range contexts() {
			for _, early := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					parent, cancelParent := context.WithCancel(context.Background())
					defer cancelParent()
					ctx, finish := make(parent, time.Now().Add(time.Minute))
					defer finish()
					w := &watchers{ctx: ctx}
					if early {
						w.begin()
						synctest.Wait()
						if ctx.Err() != nil || w.ended() != 0 {
							t.Errorf("%s, %s: it ended before: %v, %d told", kind, name, ctx.Err(), w.ended())
						}
					}
					ending.end(finish, cancelParent)
					if !early {
						w.begin()
					}
					synctest.Wait()
					if !errors.Is(ctx.Err(), ending.want) || !errors.Is(context.Cause(w.child), ending.want) {
						t.Errorf("%s, %s, waited for early %v: %v, its child %v; want %v", kind, name, early, ctx.Err(), context.Cause(w.child), ending.want)
					}
					if w.ended() != 3 {
						t.Errorf("%s, %s, waited for early %v: %d of 3 learned of it", kind, name, early, w.ended())
					}
				})
			}
		}
	}
}

// watchers learn of the end of a context in the three ways that there are.
type watchers struct {
	ctx   context.Context
	child context.Context
	told  atomic.Int32
}

func (w *watchers) begin() {
	done := w.ctx.Done()
	go func() { <-done; w.told.Add(1) }()
	context.AfterFunc(w.ctx, func() { w.told.Add(1) })
	child, cancel := context.WithCancel(w.ctx)
	w.child = child
	go func() { <-child.Done(); w.told.Add(1); cancel() }()
}

func (w *watchers) ended() int { return int(w.told.Load()) }

// TestCallContext_AfterFuncCanBeStopped: and then it does not run.
func TestCallContext_AfterFuncCanBeStopped(t *testing.T) {
	for kind, make := range contexts() {
		synctest.Test(t, func(t *testing.T) {
			ctx, finish := make(context.Background(), time.Time{})
			ran := 0
			stop := context.AfterFunc(ctx, func() { ran++ })
			if !stop() || stop() {
				t.Errorf("%s: the first stop must come in time, the second not", kind)
			}
			finish()
			synctest.Wait()
			if ran != 0 {
				t.Errorf("%s: a function that was stopped ran", kind)
			}
			stop = context.AfterFunc(ctx, func() { ran++ })
			synctest.Wait()
			if stop() || ran != 1 {
				t.Errorf("%s: after the end it ran %d times, want once", kind, ran)
			}
		})
	}
}

// TestCallContext_CostsNothingUntilSomebodyWaits: that is what it is for.
func TestCallContext_CostsNothingUntilSomebodyWaits(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	deadline := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(100, func() {
		ctx, finish := fulmar.NewCallContext(parent, deadline)
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
		finish()
	}); n > 2 { // itself, and finish as a function
		t.Errorf("%v allocations, want 2", n)
	}
}

// countingWaiter is what runs a call that makes others.
type countingWaiter struct{ waits atomic.Int64 }

func (w *countingWaiter) WillWait() { w.waits.Add(1) }

// TestCall_SaysThatItsHandlerWaits: a handler that calls another server does not
// hold up the connections of its own, because each call with its context tells the
// event loop before it waits.
func TestCall_SaysThatItsHandlerWaits(t *testing.T) {
	behind := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error { return nil }})
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		onward := dial(t, fulmar.ClientConfig{Target: behind.address, Protocol: protocol})
		var kept transport.Waiter
		front := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			kept, _ = ctx.Value(transport.WaiterKey{}).(transport.Waiter)
			if err := onward.Nothing(ctx); err != nil {
				return err
			}
			var counting countingWaiter
			err := onward.Nothing(context.WithValue(ctx, transport.WaiterKey{}, &counting))
			if waits := counting.waits.Load(); waits != 1 {
				t.Errorf("a call said %d times that its handler waits, want once", waits)
			}
			return err
		}})
		api := dial(t, fulmar.ClientConfig{Target: front.address, Protocol: protocol})
		for range 3 {
			if err := api.Nothing(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if kept == nil {
			t.Fatal("the context of a handler has nobody to tell")
		}
		kept.WillWait() // the call is over, and nobody need know
	})
}

// TestCall_EndsWithTheCallThatMadeIt: what a handler leaves behind, with the context of its
// call, ends when the handler does, also if its client sets no deadline.
func TestCall_EndsWithTheCallThatMadeIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		var api testservice.EchoClient
		var left chan error
		var waiting, quit chan struct{}
		stub := &testservice.Stub{
			OnNothing: func(ctx context.Context) error {
				go func() {
					_, err := api.Version(ctx)
					left <- err
				}()
				<-waiting
				return nil
			},
			OnVersion: func(context.Context) (string, error) {
				close(waiting)
				<-quit
				return "", nil
			},
		}
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: protocol, Timeout: -1}, stub, func(s *simulation) {
			api, left = s.api, make(chan error, 1)
			waiting, quit = make(chan struct{}), make(chan struct{})
			if err := api.Nothing(context.Background()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			select {
			case err := <-left:
				if e := asError(t, err); e.Code() != fulmar.Canceled {
					t.Errorf("the call that was left behind ended in %v", err)
				}
			default:
				t.Error("the call that was left behind goes on")
			}
			close(quit)
		})
	})
}

// TestCallContext_IsSharedOnceSomebodyDependsOnIt: the client uses the memory of one that
// is not for another call, whose end a stranger would otherwise take for this one's.
func TestCallContext_IsSharedOnceSomebodyDependsOnIt(t *testing.T) {
	for name, c := range map[string]struct {
		use    func(context.Context)
		shared bool
	}{
		"nobody":       {func(context.Context) {}, false},
		"looks":        {func(ctx context.Context) { _, _, _ = ctx.Err(), ctx.Value("key"), ctx }, false},
		"waits":        {func(ctx context.Context) { ctx.Done() }, true},
		"is told":      {func(ctx context.Context) { context.AfterFunc(ctx, func() {})() }, true},
		"a child":      {func(ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() }, true},
		"a short life": {func(ctx context.Context) { _, cancel := context.WithTimeout(ctx, time.Second); cancel() }, true},
	} {
		for _, deadline := range []time.Time{{}, time.Now().Add(time.Hour)} {
			ctx, finish := fulmar.NewCallContext(context.Background(), deadline)
			c.use(ctx)
			finish()
			if got := fulmar.CallContextShared(ctx); got != c.shared {
				t.Errorf("%s, deadline %v: shared is %v", name, deadline, got)
			}
		}
	}
}
