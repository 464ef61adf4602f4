package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
)

// stopHook is where a service would leave its registry: it is called when a stop
// begins, and the stop waits for it.
type stopHook struct{ called, leave chan struct{} }

func newStopHook() stopHook {
	return stopHook{called: make(chan struct{}), leave: make(chan struct{})}
}

func (h stopHook) run(ctx context.Context) error {
	close(h.called)
	select {
	case <-h.leave:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopGracefully stops the server while a call runs. First the hook is called, and the
// server serves on; then new calls are refused, and the one that runs ends well; then
// the server has nothing left to do.
func stopGracefully(ctx context.Context, report *report, server *openedShop, hook stopHook) error {
	return server.visit(fulmar.TTHeader.String(), fulmar.ClientConfig{}, func(v *visit) {
		counted := make(chan error, 1)
		v.step(ctx, report, "stop: BeforeStop comes first", func(ctx context.Context) (string, error) {
			if err := v.beginToCount(ctx, server.runningServer, counted); err != nil {
				return "", err
			}
			server.cancel()
			select {
			case <-hook.called:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
			got, err := v.get(ctx)
			return "a call runs, and a new one is still served: " + got, err
		})
		close(hook.leave)
		v.step(ctx, report, "stop: a new call is refused", func(ctx context.Context) (string, error) {
			refused, err := refusedSoon(ctx, server)
			if err != nil {
				return "", err
			}
			select {
			case err := <-counted:
				return "", fmt.Errorf("the call that ran has ended meanwhile: %v", err)
			default:
			}
			return wantRefusal(refused, fulmar.Unavailable, "(not executed)")
		})
		v.step(ctx, report, "stop: the running call ends", func(ctx context.Context) (string, error) {
			if err := errors.Join(await(ctx, counted), await(ctx, server.served)); err != nil {
				return "", err
			}
			calls := server.server.Stats().Calls
			return fmt.Sprintf("it was answered, %d calls are left, Serve has returned", calls), expect("the number of calls", calls, 0)
		})
	})
}

// beginToCount makes a call that takes about a second, and returns when it runs. What
// comes of it goes to counted.
func (v *visit) beginToCount(ctx context.Context, server *runningServer, counted chan<- error) error {
	select {
	case <-server.counting: // of an earlier call
	default:
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := v.api.Stocktake(ctx, &orders.StocktakeRequest{MillisecondsPerArticle: 25})
		counted <- err
	}()
	select {
	case <-server.counting:
		return nil
	case <-ended:
		return errors.New("the call ended before the server began to count")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refusedSoon calls the server from new clients until it refuses that, which it does
// very soon after its hook has returned. Who connects in the moment in which it closes
// its listener is cut off, and cannot know that nothing was executed; whoever connects
// later knows.
func refusedSoon(ctx context.Context, server *openedShop) (refused, err error) {
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for {
		err := server.visit(fulmar.TTHeader.String(), fulmar.ClientConfig{}, func(v *visit) { _, refused = v.get(ctx) })
		var known *fulmar.Error
		if err != nil || errors.As(refused, &known) && known.Executed() == fulmar.ExecutedNo {
			return refused, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
