package main

import (
	"context"
	"runtime"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/observe"
)

// Callers by these names meet code that goes wrong beside the handler.
const (
	beforeDecoding = "interceptor"
	behindDecoding = "decoded interceptor"
	endsGoroutine  = "interceptor that ends its goroutine"
	observed       = "observer"
)

// mishaps adds interceptors and an observer that panic for those callers.
func mishaps(config *fulmar.ServerConfig) {
	config.Interceptors = append(config.Interceptors, func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		switch callerOf(ctx) {
		case beforeDecoding:
			panic("an interceptor that panics")
		case endsGoroutine:
			runtime.Goexit()
		}
		return next(ctx, call)
	})
	config.DecodedInterceptors = append(config.DecodedInterceptors, func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		if callerOf(ctx) == behindDecoding {
			panic("an interceptor that panics behind decoding")
		}
		return next(ctx, call)
	})
	config.Observers = append(config.Observers, observe.Observer{
		Begin: func(ctx context.Context, _ *observe.Call) (context.Context, any) {
			if callerOf(ctx) == observed {
				panic("an observer that panics")
			}
			return ctx, nil
		},
	})
}

func callerOf(ctx context.Context) string {
	served, _ := fulmar.CallFrom(ctx)
	return served.CallerService()
}
