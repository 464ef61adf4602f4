package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/pkg/kerrors"

	types "github.com/fulmar-rpc/fulmar/test/kitex/gen/orders"
	service "github.com/fulmar-rpc/fulmar/test/kitex/gen/orders/orders"
)

// visit calls a shop and compares its answers with the file that it started
// with.
type visit struct {
	api  service.Client
	file *file
}

type step struct {
	what string
	run  func(context.Context) (string, error)
}

// steps returns what a transport can do: metadata and business errors need a
// header, calls that share a connection need multiplexing.
func (v *visit) steps(transport string) []step {
	steps := []step{
		{"Orders.get", v.get},
		{"Orders.search", v.search},
		{"Orders.place, stock", v.place},
		{"Orders.viewed (oneway)", v.viewed},
		{"declared exception", v.outOfStock},
	}
	if transport != framed {
		steps = append(steps, step{"metadata both ways", v.withinLimit}, step{"business error", v.aboveLimit})
	}
	if transport == multiplexed {
		steps = append(steps, step{"concurrent calls", v.manyAtOnce})
	}
	return steps
}

// expect returns an error unless got is what it should be.
func expect(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}

func (v *visit) get(ctx context.Context) (string, error) {
	want := v.file.Orders[len(v.file.Orders)/2]
	got, err := v.api.Get(ctx, want.Id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("order %d, %d lines, %d %s cents", got.Id, len(got.Lines), got.Totals.Total, got.Currency),
		expect("the order", got, want)
}

func (v *visit) search(ctx context.Context) (string, error) {
	request := types.NewSearchRequest()
	request.CustomerId = &v.file.Customers[7].Id
	request.Statuses = []types.Status{types.Status_DELIVERED, types.Status_RETURNED}
	var want []*types.Order
	for _, order := range slices.Backward(v.file.Orders) {
		if order.CustomerId == *request.CustomerId && slices.Contains(request.Statuses, order.Status) {
			want = append(want, order)
		}
	}
	got, err := v.api.Search(ctx, request)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d orders of customer %d", len(got), *request.CustomerId), expect("the list", got, want)
}

const article, price, pieces = "NOTEBOOK-A5", 1450, 2

// request is a basket that the shop accepts, and totals is what it comes to.
func (v *visit) request() *types.PlaceRequest {
	request := types.NewPlaceRequest()
	request.CustomerId = v.file.Customers[0].Id
	request.Basket = map[string]int32{article: pieces}
	request.Payment = &types.Payment{Invoice: &types.InvoicePayment{DueDays: 30}}
	request.Wishes = map[string]string{"note": "für Åsa"}
	return request
}

func totals() *types.Totals {
	const items, shipping = pieces * price, 490
	const total = items + shipping
	return &types.Totals{Items: items, Shipping: shipping, Tax: total * types.TAX_PERCENT / (100 + types.TAX_PERCENT), Total: total}
}

func (v *visit) place(ctx context.Context) (string, error) {
	before, err := v.api.Stock(ctx, article)
	if err != nil {
		return "", err
	}
	order, err := v.api.Place(ctx, v.request())
	if err != nil {
		return "", err
	}
	after, err := v.api.Stock(ctx, article)
	if err != nil {
		return "", err
	}
	stored, err := v.api.Get(ctx, order.Id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("order %d, %d cents, stock %d -> %d", order.Id, order.Totals.Total, before, after), errors.Join(
		expect("the stock", after, before-pieces),
		expect("the lines", order.Lines, []*types.Line{{Sku: article, Quantity: pieces, UnitPrice: price}}),
		expect("what it comes to", order.Totals, totals()),
		expect("the payment", order.Payment, v.request().Payment),
		expect("the wishes", order.Wishes, v.request().Wishes),
		expect("the stored order", stored, order))
}

func (v *visit) viewed(ctx context.Context) (string, error) {
	id := v.file.Orders[0].Id
	before, err := v.api.Views(ctx, id)
	if err != nil {
		return "", err
	}
	if err := v.api.Viewed(ctx, id); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Nobody says when a oneway call has been executed.
	for {
		after, err := v.api.Views(ctx, id)
		switch {
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", fmt.Errorf("views are still %d", after)
		case after > before:
			return fmt.Sprintf("views %d -> %d", before, after), expect("the number of views", after, before+1)
		}
	}
}

func (v *visit) outOfStock(ctx context.Context) (string, error) {
	left, err := v.api.Stock(ctx, article)
	if err != nil {
		return "", err
	}
	request := v.request()
	request.Basket[article] = left + 1
	_, err = v.api.Place(ctx, request)
	var exception *types.OutOfStock
	if !errors.As(err, &exception) {
		return "", fmt.Errorf("got %v, want OutOfStock", err)
	}
	return fmt.Sprintf("OutOfStock: %d of %s left", exception.Left, exception.Sku),
		expect("the exception", exception, &types.OutOfStock{Sku: article, Left: left})
}

// placeWithLimit places an order with a limit in the metadata and returns what
// the reply says is left of it.
func (v *visit) placeWithLimit(ctx context.Context, limit types.Cents) (left string, err error) {
	ctx = metainfo.WithBackwardValues(metainfo.WithPersistentValue(ctx, types.CUSTOMER_LIMIT, strconv.FormatInt(limit, 10)))
	_, err = v.api.Place(ctx, v.request())
	left, _ = metainfo.RecvBackwardValue(ctx, types.LIMIT_LEFT)
	return left, err
}

func (v *visit) withinLimit(ctx context.Context) (string, error) {
	const spare = 1234
	limit := totals().Total + spare
	left, err := v.placeWithLimit(ctx, limit)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sent %s %d, got back %s %s", types.CUSTOMER_LIMIT, limit, types.LIMIT_LEFT, left),
		expect("what came back", left, strconv.Itoa(spare))
}

func (v *visit) aboveLimit(ctx context.Context) (string, error) {
	before, err := v.api.Stock(ctx, article)
	if err != nil {
		return "", err
	}
	limit := totals().Total - 1
	left, err := v.placeWithLimit(ctx, limit)
	refusal, ok := kerrors.FromBizStatusError(err)
	if !ok {
		return "", fmt.Errorf("got %v, want a business error", err)
	}
	after, err := v.api.Stock(ctx, article)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s %v", refusal.BizStatusCode(), refusal.BizMessage(), refusal.BizExtra()), errors.Join(
		expect("the status", refusal.BizStatusCode(), int32(types.LIMIT_REACHED)),
		expect("the message", refusal.BizMessage(), "limit reached"),
		expect("the extra", refusal.BizExtra(), map[string]string{
			"limit": strconv.FormatInt(limit, 10), "total": strconv.FormatInt(totals().Total, 10),
		}),
		expect("what came back", left, strconv.FormatInt(limit, 10)),
		expect("the stock", after, before))
}

// slowCall is how long the call takes that the others overtake. All of them took
// 4 ms on two cores, so this leaves room for a busy machine.
const slowCall = time.Second

// manyAtOnce makes calls that are all in flight together and wants each to get
// its own answer, while a call that came before them is not answered yet.
func (v *visit) manyAtOnce(ctx context.Context) (string, error) {
	const calls = 64
	counted := make(chan error, 1)
	go func() {
		request := &types.StocktakeRequest{Skus: []string{article}, MillisecondsPerArticle: int32(slowCall.Milliseconds())}
		report, err := v.api.Stocktake(ctx, request)
		if err == nil {
			err = expect("the number of articles", len(report.Pieces), 1)
		}
		counted <- err
	}()
	// The slow call is on its way before this one has its answer, or very soon
	// after.
	if _, err := v.get(ctx); err != nil {
		return "", errors.Join(err, <-counted)
	}
	answers := make(chan error, calls)
	for i := range calls {
		want := v.file.Orders[i%len(v.file.Orders)]
		go func() {
			got, err := v.api.Get(ctx, want.Id)
			if err == nil {
				err = expect("an order", got, want)
			}
			answers <- err
		}()
	}
	var failures []error
	for range calls {
		failures = append(failures, <-answers)
	}
	select {
	case err := <-counted:
		failures = append(failures, err, errors.New("the slow call was answered before the fast ones"))
	default:
		failures = append(failures, <-counted)
	}
	return fmt.Sprintf("%d calls overtook a slow one", calls), errors.Join(failures...)
}
