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

// callWithLimit makes the calls that need a header: a limit travels there as
// metadata, what is left of it comes back so, and the refusal of an order above
// it is a business error.
func (v *visit) callWithLimit(ctx context.Context, report *report) {
	v.step(ctx, report, "metadata both ways", v.withinLimit)
	v.step(ctx, report, "business error", v.aboveLimit)
}

// placeWithLimit places an order with a limit and returns what the reply says is
// left of it.
func (v *visit) placeWithLimit(ctx context.Context, limit orders.Cents) (order *orders.Order, left string, err error) {
	var back map[string]string
	ctx = fulmar.WithPersistent(ctx, orders.CUSTOMER_LIMIT, strconv.FormatInt(limit, 10))
	order, err = v.api.Place(ctx, v.request(), fulmar.ReceiveMetadata(&back))
	return order, back[orders.LIMIT_LEFT], err
}

func (v *visit) withinLimit(ctx context.Context) (string, error) {
	const limit = 1_000_000
	order, left, err := v.placeWithLimit(ctx, limit)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sent %s %d, got back %s %s", orders.CUSTOMER_LIMIT, limit, orders.LIMIT_LEFT, left),
		expect("what came back", left, strconv.FormatInt(limit-order.Totals.Total, 10))
}

func (v *visit) aboveLimit(ctx context.Context) (string, error) {
	order, err := v.api.Place(ctx, v.request())
	if err != nil {
		return "", err
	}
	before, err := v.api.Stock(ctx, order.Lines[0].Sku)
	if err != nil {
		return "", err
	}
	limit := order.Totals.Total - 1
	_, left, err := v.placeWithLimit(ctx, limit)
	var refusal *fulmar.BusinessError
	if !errors.As(err, &refusal) {
		return "", fmt.Errorf("got %v, want a business error", err)
	}
	after, err := v.api.Stock(ctx, order.Lines[0].Sku)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s %v", refusal.Status(), refusal.Message(), refusal.Extra()), errors.Join(
		expect("the status", refusal.Status(), int32(orders.LIMIT_REACHED)),
		expect("the message", refusal.Message(), "limit reached"),
		expect("the extra", refusal.Extra(), map[string]string{
			"limit": strconv.FormatInt(limit, 10), "total": strconv.FormatInt(order.Totals.Total, 10),
		}),
		expect("what came back", left, strconv.FormatInt(limit, 10)),
		expect("the stock", after, before))
}

// sharedMax is how many connections a client shares among calls to one address:
// 4 (MultiplexedConnections).
const sharedMax = 4

// slowCall is how long the call takes that the others overtake. All of them took
// 4 ms on two cores, so this leaves room for a busy machine.
const slowCall = time.Second

// manyAtOnce makes calls that are all in flight together, and wants each to get
// its own answer, on connections that they share, while a call that came before
// them is not answered yet.
func (v *visit) manyAtOnce(ctx context.Context) (string, error) {
	const calls = 64
	counted := make(chan error, 1)
	go func() {
		request := &orders.StocktakeRequest{Skus: []string{"KETTLE-12"}, MillisecondsPerArticle: int32(slowCall.Milliseconds())}
		report, err := v.api.Stocktake(ctx, request)
		if err == nil {
			err = expect("the number of articles", len(report.Pieces), 1)
		}
		counted <- err
	}()
	// The slow call is on its way before this one has its answer, or very soon
	// after.
	if _, err := v.get(ctx); err != nil {
		return "", errors.Join(err, await(ctx, counted))
	}
	answers := make(chan error, calls)
	for _, want := range v.file.Orders[:calls] {
		go func() {
			got, err := v.api.Get(ctx, want.ID)
			if err == nil {
				err = errors.Join(
					expect("the order", got.ID, want.ID), expect("its lines", got.Lines, want.Lines), expect("its totals", got.Totals, want.Totals))
			}
			answers <- err
		}()
	}
	var failures []error
	for range calls {
		failures = append(failures, await(ctx, answers))
	}
	select {
	case err := <-counted:
		failures = append(failures, err, errors.New("the slow call was answered before the fast ones"))
	default:
		failures = append(failures, await(ctx, counted))
	}
	stats := v.client.Stats()
	if stats.Multiplexed == 0 || stats.Connections > sharedMax {
		failures = append(failures, fmt.Errorf("calls share %d of %d connections, want 1 to %d", stats.Multiplexed, stats.Connections, sharedMax))
	}
	return fmt.Sprintf("%d calls overtook a slow one; shared connections: %d", calls, stats.Multiplexed), errors.Join(failures...)
}
