package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
)

// proxyCaller is what the proxy calls itself.
const proxyCaller = "proxy"

// callThroughProxy calls a shop through a server that knows no definition of it, as
// examples/proxy does.
func callThroughProxy(ctx context.Context, report *report) (err error) {
	// calls gets those that the shop serves behind the proxy.
	calls := make(chan fulmar.Call, 1)
	shop, err := openShop(ctx, fulmar.ServerConfig{Interceptors: []fulmar.UnaryInterceptor{
		fulmar.OnlyFor(recordCall(calls), orders.OrdersPlaceFullMethodName),
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.end(ctx)) }()
	onward, err := fulmar.NewClient(fulmar.ClientConfig{Target: shop.address, Caller: proxyCaller, MaxMessageBytes: messageLimit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, onward.Close()) }()
	proxy, err := start(ctx, fulmar.ServerConfig{UnknownHandler: fulmar.Forward(onward), MaxMessageBytes: messageLimit}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.end(ctx)) }()
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader} {
		err := shop.visit("proxy, "+protocol.String(), fulmar.ClientConfig{Target: proxy.address, Protocol: protocol}, func(v *visit) {
			v.callEverything(ctx, report)
			v.step(ctx, report, "declared exception", v.outOfStock)
			v.step(ctx, report, "exceeded deadline", v.tooSlow)
			if protocol == fulmar.TTHeader {
				v.callWithLimit(ctx, report)
				v.step(ctx, report, "deadline, metadata two hops on", func(ctx context.Context) (string, error) { return v.arrives(ctx, calls) })
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recordCall keeps the latest call that nobody has asked for.
func recordCall(calls chan fulmar.Call) fulmar.UnaryInterceptor {
	return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		served, _ := fulmar.CallFrom(ctx)
		select {
		case calls <- served:
		default:
		}
		return next(ctx, call)
	}
}

// arrives makes a call, and compares what the shop is told of it with what was sent.
func (v *visit) arrives(ctx context.Context, calls <-chan fulmar.Call) (string, error) {
	select {
	case <-calls: // of an earlier call
	default:
	}
	const limit, patience = 500_000, 5 * time.Second
	// Whole milliseconds travel, rounded up at each of the two hops. What is left travels, not
	// when it ends: the time on the way comes on top.
	const rounding = 2 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	deadline, _ := ctx.Deadline()
	sentAt := time.Now()
	order, left, err := v.placeWithLimit(fulmar.WithTransient(ctx, "HOP", "first"), limit)
	took := time.Since(sentAt)
	if err != nil {
		return "", err
	}
	got := <-calls // The call was answered, so this is there.
	told, _ := got.Deadline()
	later := told.Sub(deadline)
	sent, _ := got.Metadata().Persistent(orders.CUSTOMER_LIMIT)
	_, transient := got.Metadata().Transient("HOP")
	if told.IsZero() || later > rounding+took || later < -patience/2 {
		return "", fmt.Errorf("the deadline there is %v, want %v", told, deadline)
	}
	return fmt.Sprintf("%s %s, deadline %+.1f ms, caller %s; back: %s %s",
			orders.CUSTOMER_LIMIT, sent, float64(later.Microseconds())/1000, got.CallerService(), orders.LIMIT_LEFT, left), errors.Join(
			expect("the limit there", sent, strconv.Itoa(limit)),
			expect("what came back", left, strconv.FormatInt(limit-order.Totals.Total, 10)),
			expect("who called", got.CallerService(), proxyCaller),
			expect("whether what is for one hop went further", transient, false))
}
