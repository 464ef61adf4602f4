// Package shop implements the service of orders.thrift: a small shop whose
// products, customers and orders live in memory.
package shop

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
	"github.com/fulmar-rpc/fulmar/thrift"
)

//go:generate fulmar gen -o ../gen ../orders.thrift

// Shop implements orders.OrdersServer.
type Shop struct {
	// These never change.
	catalogue []orders.Product
	customers map[int64]orders.Customer

	mu    sync.Mutex
	stock map[string]int32
	views map[orders.OrderID]int64
	// orders holds values that are replaced and never changed: replies refer to
	// them after the lock was given back.
	orders map[orders.OrderID]*orders.Order
	last   orders.OrderID
}

var _ orders.OrdersServer = (*Shop)(nil)

// Place takes the pieces from stock and returns the new order.
func (s *Shop) Place(ctx context.Context, request *orders.PlaceRequest) (*orders.Order, error) {
	order, err := s.offer(request)
	if err != nil {
		return nil, err
	}
	left, err := withinLimit(ctx, order.Totals.Total)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range order.Lines {
		if left := s.stock[line.Sku]; left < line.Quantity {
			return nil, &orders.OutOfStock{Sku: line.Sku, Left: left}
		}
	}
	if left != "" {
		if err := fulmar.SetReplyMetadata(ctx, orders.LIMIT_LEFT, left); err != nil {
			return nil, err
		}
	}
	for _, line := range order.Lines {
		s.stock[line.Sku] -= line.Quantity
	}
	s.last++
	order.ID = s.last
	s.orders[order.ID] = order
	return order, nil
}

// withinLimit compares a total with the limit that came with the call. It
// returns what is left of the limit, or nothing if there is none. Metadata are
// what a caller says: good for a limit that callers set themselves, not for one
// that they must not pass.
func withinLimit(ctx context.Context, total orders.Cents) (left string, err error) {
	call, _ := fulmar.CallFrom(ctx)
	text, limited := call.Metadata().Persistent(orders.CUSTOMER_LIMIT)
	if !limited {
		return "", nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || limit < 0:
		return "", &orders.InvalidOrder{Field: orders.CUSTOMER_LIMIT, Reason: fmt.Sprintf("%.40q is no number of cents", text)}
	case total > limit:
		if err := fulmar.SetReplyMetadata(ctx, orders.LIMIT_LEFT, strconv.FormatInt(limit, 10)); err != nil {
			return "", err
		}
		return "", fulmar.NewBusinessError(orders.LIMIT_REACHED, "limit reached", map[string]string{
			"limit": strconv.FormatInt(limit, 10),
			"total": strconv.FormatInt(total, 10),
		})
	}
	return strconv.FormatInt(limit-total, 10), nil
}

// offer returns the order that a request makes, without a number, if it can be
// accepted as far as the catalogue is concerned.
func (s *Shop) offer(request *orders.PlaceRequest) (*orders.Order, error) {
	customer, known := s.customers[request.CustomerID]
	switch {
	case !known:
		return nil, &orders.InvalidOrder{Field: "customerId", Reason: fmt.Sprintf("no customer %d", request.CustomerID)}
	case len(request.Basket) == 0:
		return nil, &orders.InvalidOrder{Field: "basket", Reason: "the basket is empty"}
	}
	if _, sold := orders.FREE_SHIPPING_FROM[request.Currency]; !sold {
		return nil, &orders.InvalidOrder{Field: "currency", Reason: fmt.Sprintf("we do not sell in %.10q", request.Currency)}
	}
	lines, err := s.lines(request)
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMilli()
	order := &orders.Order{
		CustomerID: customer.ID,
		Status:     orders.Status_PLACED,
		Currency:   request.Currency,
		Lines:      lines,
		Totals:     totalsOf(lines, request.Currency),
		ShipTo:     customer.Address,
		Payment:    request.Payment,
		PlacedAt:   now,
		History:    map[orders.Status]int64{orders.Status_PLACED: now},
		Wishes:     request.Wishes,
	}
	if request.ShipTo != nil {
		order.ShipTo = *request.ShipTo
	}
	return order, nil
}

// lines prices a basket, in the order of the catalogue.
func (s *Shop) lines(request *orders.PlaceRequest) ([]orders.Line, error) {
	var lines []orders.Line
	for _, product := range s.catalogue {
		quantity, wanted := request.Basket[product.Sku]
		if !wanted {
			continue
		}
		if quantity < 1 {
			return nil, &orders.InvalidOrder{Field: "basket", Reason: fmt.Sprintf("%d pieces of %s", quantity, product.Sku)}
		}
		lines = append(lines, orders.Line{Sku: product.Sku, Quantity: quantity, UnitPrice: product.Prices[request.Currency]})
	}
	if len(lines) < len(request.Basket) {
		return nil, &orders.InvalidOrder{Field: "basket", Reason: "something in it is not in the catalogue"}
	}
	return lines, nil
}

func totalsOf(lines []orders.Line, currency orders.Currency) orders.Totals {
	var totals orders.Totals
	for _, line := range lines {
		totals.Items += int64(line.Quantity) * line.UnitPrice
	}
	if totals.Items < orders.FREE_SHIPPING_FROM[currency] {
		totals.Shipping = orders.SHIPPING[currency]
	}
	totals.Total = totals.Items + totals.Shipping
	const tax = orders.Cents(orders.TAX_PERCENT)
	totals.Tax = totals.Total * tax / (100 + tax)
	return totals
}

// Get returns an order.
func (s *Shop) Get(_ context.Context, id orders.OrderID) (*orders.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order, ok := s.orders[id]; ok {
		return order, nil
	}
	return nil, &orders.NotFound{What: fmt.Sprintf("order %d", id)}
}

// Search returns the orders that fit, the highest number first.
func (s *Shop) Search(_ context.Context, request *orders.SearchRequest) ([]orders.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []orders.Order
	for _, order := range s.orders {
		if fits(request, order) {
			found = append(found, *order)
		}
	}
	slices.SortFunc(found, func(a, b orders.Order) int { return cmp.Compare(b.ID, a.ID) })
	return found[:min(len(found), max(0, int(request.GetLimit())))], nil
}

func fits(request *orders.SearchRequest, order *orders.Order) bool {
	if id, set := request.CustomerID.Get(); set && id != order.CustomerID {
		return false
	}
	if request.Statuses != nil && !slices.Contains(request.Statuses, order.Status) {
		return false
	}
	if sku, set := request.Sku.Get(); set {
		return slices.ContainsFunc(order.Lines, func(line orders.Line) bool { return line.Sku == sku })
	}
	return true
}

// Turnover adds up what was sold, by currency.
func (s *Shop) Turnover(context.Context) (map[orders.Currency]*orders.Turnover, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turnover := map[orders.Currency]*orders.Turnover{}
	for _, order := range s.orders {
		if order.Status == orders.Status_CANCELLED || order.Status == orders.Status_RETURNED {
			continue
		}
		sold := turnover[order.Currency]
		if sold == nil {
			sold = &orders.Turnover{Pieces: map[string]int64{}}
			turnover[order.Currency] = sold
		}
		sold.Orders++
		sold.Totals.Items += order.Totals.Items
		sold.Totals.Shipping += order.Totals.Shipping
		sold.Totals.Tax += order.Totals.Tax
		sold.Totals.Total += order.Totals.Total
		for _, line := range order.Lines {
			sold.Pieces[line.Sku] += int64(line.Quantity)
		}
	}
	return turnover, nil
}

// Stock returns how many pieces are left.
func (s *Shop) Stock(_ context.Context, sku string) (int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left, ok := s.stock[sku]; ok {
		return left, nil
	}
	return 0, &orders.NotFound{What: fmt.Sprintf("article %.40q", sku)}
}

// Product returns an article of the catalogue.
func (s *Shop) Product(_ context.Context, sku string) (*orders.Product, error) {
	for i := range s.catalogue {
		if s.catalogue[i].Sku == sku {
			return &s.catalogue[i], nil
		}
	}
	return nil, &orders.NotFound{What: fmt.Sprintf("article %.40q", sku)}
}

// Viewed counts a look at an order.
func (s *Shop) Viewed(_ context.Context, id orders.OrderID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.orders[id]; ok {
		s.views[id]++
	}
	return nil
}

// Views returns how often an order was looked at.
func (s *Shop) Views(_ context.Context, id orders.OrderID) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.views[id], nil
}

// Advance moves an order to a later status.
func (s *Shop) Advance(_ context.Context, id orders.OrderID, status orders.Status) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, ok := s.orders[id]
	switch {
	case !ok:
		return &orders.NotFound{What: fmt.Sprintf("order %d", id)}
	case status <= order.Status || status > orders.Status_RETURNED:
		return &orders.InvalidOrder{Field: "status", Reason: fmt.Sprintf("%v does not come after %v", status, order.Status)}
	}
	next := *order
	next.Status = status
	next.History = maps.Clone(order.History)
	if next.History == nil {
		next.History = map[orders.Status]int64{}
	}
	next.History[status] = time.Now().UnixMilli()
	if status == orders.Status_SHIPPED {
		next.TrackingCode = thrift.Some(fmt.Sprintf("FL%09d", id))
	}
	s.orders[id] = &next
	return nil
}

// Stocktake counts articles, which takes its time. It gives up when nobody
// waits for the result any more.
func (s *Shop) Stocktake(ctx context.Context, request *orders.StocktakeRequest) (*orders.Stocktake, error) {
	report := &orders.Stocktake{Pieces: map[string]int32{}, Empty: []string{}}
	for _, product := range s.catalogue {
		if len(request.Skus) > 0 && !slices.Contains(request.Skus, product.Sku) {
			continue
		}
		select {
		case <-time.After(time.Duration(request.MillisecondsPerArticle) * time.Millisecond):
		case <-ctx.Done():
			return nil, fulmar.Errorf(fulmar.CodeOf(ctx.Err()), "counting stopped at %s: %w", product.Sku, ctx.Err())
		}
		left, err := s.Stock(ctx, product.Sku)
		if err != nil {
			return nil, err
		}
		report.Pieces[product.Sku] = left
		if left == 0 {
			report.Empty = append(report.Empty, product.Sku)
		}
	}
	return report, nil
}
