package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
)

// refuseTooMany calls a shop that runs one call at a time and lets one wait.
func refuseTooMany(ctx context.Context, report *report) (err error) {
	// gate lets a stocktake begin when it gets a value.
	gate := make(chan struct{})
	shop, err := openShop(ctx, fulmar.ServerConfig{
		MaxRunningCalls: 1, MaxQueuedCalls: 1,
		MaxQueueTime: -1, // So that the one that waits does so until we have seen the refusal.
		DecodedInterceptors: []fulmar.UnaryInterceptor{
			fulmar.OnlyFor(func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
				select {
				case <-gate:
					return next(ctx, call)
				case <-ctx.Done():
					return ctx.Err()
				}
			}, orders.OrdersStocktakeFullMethodName),
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.end(ctx)) }()
	for _, refusal := range []struct {
		protocol fulmar.Protocol
		code     fulmar.Code
		text     string
	}{
		{fulmar.TTHeader, fulmar.ResourceExhausted, "1 calls are running and 1 wait (limit 1) (not executed)"},
		// Without a header there is no place for a code, and none for what was not executed.
		{fulmar.Framed, fulmar.Internal, "1 calls are running and 1 wait (limit 1) (maybe executed)"},
	} {
		err := shop.visit(refusal.protocol.String(), fulmar.ClientConfig{Protocol: refusal.protocol}, func(v *visit) {
			v.step(ctx, report, "refused: one runs, one waits", func(ctx context.Context) (string, error) {
				refused, err := v.oneTooMany(ctx, shop.runningServer, gate)
				if err != nil {
					return "", err
				}
				return wantRefusal(refused, refusal.code, refusal.text)
			})
			v.step(ctx, report, "and all goes on", v.get)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// oneTooMany makes a call that runs until gate lets it, and two more, and returns why
// one of those was refused. The others must succeed.
func (v *visit) oneTooMany(ctx context.Context, server *runningServer, gate chan<- struct{}) (refused, err error) {
	running := make(chan error, 1)
	go func() {
		_, err := v.stocktake(ctx)
		running <- err
	}()
	select {
	case <-server.counting:
	case err := <-running:
		return nil, fmt.Errorf("the call that should run has ended: %w", err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// Which of them waits and which is refused depends on who comes first.
	others := make(chan error, 2)
	for range cap(others) {
		go func() {
			_, err := v.get(ctx)
			others <- err
		}()
	}
	refused = await(ctx, others)
	select {
	case gate <- struct{}{}:
	case err := <-running:
		return nil, fmt.Errorf("the call that should run has ended, nothing was refused in time: %w", err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return refused, errors.Join(await(ctx, running), await(ctx, others))
}
