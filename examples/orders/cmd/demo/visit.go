package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
	"github.com/fulmar-rpc/fulmar/examples/orders/shop"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// visit calls a shop in one way and compares its answers with the file that the
// shop started with.
type visit struct {
	caller, over string
	client       *fulmar.Client
	api          orders.OrdersClient
	file         *shop.File
}

func newVisit(caller, over string, config fulmar.ClientConfig, file *shop.File) (*visit, error) {
	client, err := fulmar.NewClient(config)
	if err != nil {
		return nil, err
	}
	return &visit{caller: caller, over: over, client: client, api: orders.NewOrdersClient(client), file: file}, nil
}

func (v *visit) close() { _ = v.client.Close() }

// step runs a step of the visit and reports it.
func (v *visit) step(ctx context.Context, report *report, what string, run func(context.Context) (string, error)) {
	report.step(v.caller, what, v.over, func() (string, error) { return run(ctx) })
}

// expect returns an error unless got is what it should be.
func expect(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}

// callEverything calls each method once, in the way it is meant.
func (v *visit) callEverything(ctx context.Context, report *report) {
	v.step(ctx, report, "Orders.get", v.get)
	v.step(ctx, report, "Orders.search", v.search)
	v.step(ctx, report, "Orders.product", v.product)
	v.step(ctx, report, "Orders.place, stock, turnover", v.place)
	v.step(ctx, report, "Orders.advance", v.advance)
	v.step(ctx, report, "Orders.viewed (oneway)", v.viewed)
	v.step(ctx, report, "Orders.stocktake", v.stocktake)
}

func (v *visit) get(ctx context.Context) (string, error) {
	want := v.file.Orders[len(v.file.Orders)/2]
	got, err := v.api.Get(ctx, want.ID)
	if err != nil {
		return "", err
	}
	// The file leaves out what an order has by default.
	if want.ShipTo == (orders.Address{}) {
		customer := slices.IndexFunc(v.file.Customers, func(c orders.Customer) bool { return c.ID == want.CustomerID })
		want.ShipTo = v.file.Customers[customer].Address
	}
	if want.Wishes == nil {
		want.Wishes = map[string]string{}
	}
	return fmt.Sprintf("order %d, %d lines, %d %s cents", got.ID, len(got.Lines), got.Totals.Total, got.Currency),
		expect("the order", *got, want)
}

func (v *visit) search(ctx context.Context) (string, error) {
	statuses := []orders.Status{orders.Status_DELIVERED, orders.Status_RETURNED}
	customer := v.file.Customers[7].ID
	var want []orders.OrderID
	for _, order := range slices.Backward(v.file.Orders) {
		if order.CustomerID == customer && slices.Contains(statuses, order.Status) {
			want = append(want, order.ID)
		}
	}
	found, err := v.api.Search(ctx, &orders.SearchRequest{CustomerID: thrift.Some(customer), Statuses: statuses})
	if err != nil {
		return "", err
	}
	var got []orders.OrderID
	for _, order := range found {
		got = append(got, order.ID)
	}
	return fmt.Sprintf("%d orders of customer %d", len(got), customer), expect("the list", got, want)
}

func (v *visit) product(ctx context.Context) (string, error) {
	want := v.file.Products[3]
	got, err := v.api.Product(ctx, want.Sku)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d cents", got.Title, got.Prices["EUR"]), expect("the product", *got, want)
}

// request is a basket that the shop accepts.
func (v *visit) request() *orders.PlaceRequest {
	request := orders.NewPlaceRequest()
	request.CustomerID = v.file.Customers[0].ID
	request.Basket = map[string]int32{"MUG-ENAMEL-W": 2, "TEA-EARLY": 1}
	request.Payment = orders.Payment{Card: &orders.CardPayment{Brand: "Visa", LastDigits: "4242"}}
	request.Wishes = map[string]string{"note": "für Åsa"}
	return request
}

func (v *visit) place(ctx context.Context) (string, error) {
	before, err := v.api.Stock(ctx, "MUG-ENAMEL-W")
	if err != nil {
		return "", err
	}
	sold, err := v.api.Turnover(ctx)
	if err != nil {
		return "", err
	}
	order, err := v.api.Place(ctx, v.request())
	if err != nil {
		return "", err
	}
	after, err := v.api.Stock(ctx, "MUG-ENAMEL-W")
	if err != nil {
		return "", err
	}
	now, err := v.api.Turnover(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("order %d, %d %s cents, stock %d -> %d", order.ID, order.Totals.Total, order.Currency, before, after), errors.Join(
		expect("the stock", after, before-2),
		expect("the turnover", soldFor(now["EUR"]), soldFor(sold["EUR"])+order.Totals.Total),
		expect("the payment", order.Payment.Card, v.request().Payment.Card),
		expect("the wishes", order.Wishes, v.request().Wishes))
}

// soldFor is what was sold in all, of a turnover that is nil if nothing was.
func soldFor(turnover *orders.Turnover) orders.Cents {
	if turnover == nil {
		return 0
	}
	return turnover.Totals.Total
}

func (v *visit) advance(ctx context.Context) (string, error) {
	order, err := v.api.Place(ctx, v.request())
	if err != nil {
		return "", err
	}
	for _, status := range []orders.Status{orders.Status_PAID, orders.Status_SHIPPED} {
		if err := v.api.Advance(ctx, order.ID, status); err != nil {
			return "", err
		}
	}
	order, err = v.api.Get(ctx, order.ID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("order %d is %v, tracking code %v", order.ID, order.Status, order.TrackingCode), errors.Join(
		expect("the status", order.Status, orders.Status_SHIPPED),
		expect("the length of the history", len(order.History), 3))
}

func (v *visit) viewed(ctx context.Context) (string, error) {
	id := v.file.Orders[0].ID
	before, err := v.api.Views(ctx, id)
	if err != nil {
		return "", err
	}
	if err := v.api.Viewed(ctx, id); err != nil {
		return "", err
	}
	// Nobody says when a oneway call has been executed. It took less than 2 ms
	// on two cores, so a second is enough for a busy machine.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for {
		after, err := v.api.Views(ctx, id)
		switch {
		case err != nil:
			return "", fmt.Errorf("views are still %d: %w", before, err)
		case after > before:
			return fmt.Sprintf("views %d -> %d", before, after), expect("the number of views", after, before+1)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return "", fmt.Errorf("views are still %d: %w", before, ctx.Err())
		}
	}
}

func (v *visit) stocktake(ctx context.Context) (string, error) {
	request := &orders.StocktakeRequest{Skus: []string{"KETTLE-12", "BUTTER-DISH"}, MillisecondsPerArticle: 1}
	report, err := v.api.Stocktake(ctx, request)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%v", report.Pieces), expect("the number of articles", len(report.Pieces), 2)
}

// failOnPurpose makes calls that cannot succeed and checks how they fail.
func (v *visit) failOnPurpose(ctx context.Context, report *report) {
	v.step(ctx, report, "declared exception", v.outOfStock)
	v.step(ctx, report, "exceeded deadline", v.tooSlow)
	v.step(ctx, report, "refused message", func(ctx context.Context) (string, error) {
		request := v.request()
		request.Wishes = map[string]string{"novel": strings.Repeat("It was a dark and stormy night. ", messageLimit/32)}
		_, err := v.api.Place(ctx, request)
		var refused *fulmar.Error
		if !errors.As(err, &refused) || refused.Origin() != fulmar.OriginRemote || !strings.Contains(err.Error(), fmt.Sprint(messageLimit)) {
			return "", fmt.Errorf("got %v, want a refusal that names the limit", err)
		}
		return refused.Message(), nil
	})
	v.step(ctx, report, "and all goes on", v.get)
}

func (v *visit) tooSlow(ctx context.Context) (string, error) {
	const timeout = 50 * time.Millisecond
	// Five times what is promised (P3), for machines that are busy.
	const late = 250 * time.Millisecond
	start := time.Now()
	_, err := v.api.Stocktake(ctx, orders.NewStocktakeRequest(), fulmar.Timeout(timeout))
	took := time.Since(start).Round(time.Millisecond)
	if took > timeout+late {
		return "", fmt.Errorf("gave up after %v, want at most %v: %w", took, timeout+late, err)
	}
	return wantCode(err, fulmar.DeadlineExceeded, fmt.Sprintf("gave up after %v", took))
}

func (v *visit) outOfStock(ctx context.Context) (string, error) {
	request := v.request()
	request.Basket = map[string]int32{"TEA-EARLY": 1_000_000}
	_, err := v.api.Place(ctx, request)
	var outOfStock *orders.OutOfStock
	if !errors.As(err, &outOfStock) {
		return "", fmt.Errorf("got %v, want OutOfStock", err)
	}
	return fmt.Sprintf("OutOfStock: %d of %s left", outOfStock.Left, outOfStock.Sku), expect("the article", outOfStock.Sku, "TEA-EARLY")
}

// wantCode returns text if err has the code.
func wantCode(err error, code fulmar.Code, text string) (string, error) {
	if fulmar.CodeOf(err) != code {
		return "", fmt.Errorf("got %v, want %v", err, code)
	}
	return text, nil
}
