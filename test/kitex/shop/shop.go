package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/pkg/kerrors"

	types "github.com/fulmar-rpc/fulmar/test/kitex/gen/orders"
)

// shop implements the service as the comments of the IDL say. It shares no code
// with the one of the example. It is safe for concurrent use.
type shop struct {
	// These never change.
	catalogue []*types.Product
	customers map[int64]*types.Customer

	mu    sync.Mutex
	stock map[string]int32
	views map[types.OrderId]int64
	// orders holds values that are replaced and never changed: Kitex encodes
	// replies after the lock was given back.
	orders map[types.OrderId]*types.Order
	last   types.OrderId
}

var _ types.Orders = (*shop)(nil)

// newShop returns a shop that starts with the content of a file, which it takes
// over.
func newShop(f *file) *shop {
	s := &shop{
		catalogue: f.Products,
		customers: map[int64]*types.Customer{},
		stock:     f.Stock,
		views:     map[types.OrderId]int64{},
		orders:    map[types.OrderId]*types.Order{},
	}
	for _, customer := range f.Customers {
		s.customers[customer.Id] = customer
	}
	for _, order := range f.Orders {
		s.orders[order.Id] = order
		s.last = max(s.last, order.Id)
	}
	return s
}

func (s *shop) Place(ctx context.Context, request *types.PlaceRequest) (*types.Order, error) {
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
			return nil, &types.OutOfStock{Sku: line.Sku, Left: left}
		}
	}
	for _, line := range order.Lines {
		s.stock[line.Sku] -= line.Quantity
	}
	s.last++
	order.Id = s.last
	s.orders[order.Id] = order
	if left != "" {
		metainfo.SendBackwardValue(ctx, types.LIMIT_LEFT, left)
	}
	return order, nil
}

// offer returns the order that a request makes, without a number, if it can be
// accepted as far as the catalogue is concerned.
func (s *shop) offer(request *types.PlaceRequest) (*types.Order, error) {
	invalid := func(field, format string, values ...any) error {
		return &types.InvalidOrder{Field: field, Reason: fmt.Sprintf(format, values...)}
	}
	customer := s.customers[request.CustomerId]
	freeFrom, sold := types.FREE_SHIPPING_FROM[request.Currency]
	switch {
	case customer == nil:
		return nil, invalid("customerId", "no customer %d", request.CustomerId)
	case len(request.Basket) == 0:
		return nil, invalid("basket", "the basket is empty")
	case !sold:
		return nil, invalid("currency", "we do not sell in %.10q", request.Currency)
	}
	now := time.Now().UnixMilli()
	order := &types.Order{
		CustomerId: customer.Id,
		Status:     types.Status_PLACED,
		Currency:   request.Currency,
		Totals:     &types.Totals{},
		ShipTo:     cmp.Or(request.ShipTo, customer.Address),
		Payment:    request.Payment,
		PlacedAt:   now,
		History:    map[types.Status]int64{types.Status_PLACED: now},
		Wishes:     request.Wishes,
	}
	for _, product := range s.catalogue {
		quantity, wanted := request.Basket[product.Sku]
		switch {
		case wanted && quantity < 1:
			return nil, invalid("basket", "%d pieces of %s", quantity, product.Sku)
		case wanted:
			line := &types.Line{Sku: product.Sku, Quantity: quantity, UnitPrice: product.Prices[request.Currency]}
			order.Lines = append(order.Lines, line)
			order.Totals.Items += int64(quantity) * line.UnitPrice
		}
	}
	if len(order.Lines) < len(request.Basket) {
		return nil, invalid("basket", "something in it is not in the catalogue")
	}
	if order.Totals.Items < freeFrom {
		order.Totals.Shipping = types.SHIPPING[request.Currency]
	}
	order.Totals.Total = order.Totals.Items + order.Totals.Shipping
	order.Totals.Tax = order.Totals.Total * types.TAX_PERCENT / (100 + types.TAX_PERCENT)
	return order, nil
}

// withinLimit compares a total with the limit that came with the call. It
// returns what is left of the limit, or nothing if there is none.
func withinLimit(ctx context.Context, total types.Cents) (left string, err error) {
	text, limited := metainfo.GetPersistentValue(ctx, types.CUSTOMER_LIMIT)
	if !limited {
		return "", nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || limit < 0:
		return "", &types.InvalidOrder{Field: types.CUSTOMER_LIMIT, Reason: fmt.Sprintf("%.40q is no number of cents", text)}
	case total > limit:
		metainfo.SendBackwardValue(ctx, types.LIMIT_LEFT, text)
		return "", kerrors.NewBizStatusErrorWithExtra(types.LIMIT_REACHED, "limit reached",
			map[string]string{"limit": text, "total": strconv.FormatInt(total, 10)})
	}
	return strconv.FormatInt(limit-total, 10), nil
}

func (s *shop) Get(_ context.Context, id types.OrderId) (*types.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order, ok := s.orders[id]; ok {
		return order, nil
	}
	return nil, &types.NotFound{What: fmt.Sprintf("order %d", id)}
}

func (s *shop) Search(_ context.Context, request *types.SearchRequest) ([]*types.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.Collect(maps.Values(s.orders))
	found = slices.DeleteFunc(found, func(order *types.Order) bool {
		hasArticle := func(line *types.Line) bool { return line.Sku == request.GetSku() }
		return request.CustomerId != nil && *request.CustomerId != order.CustomerId ||
			request.Statuses != nil && !slices.Contains(request.Statuses, order.Status) ||
			request.Sku != nil && !slices.ContainsFunc(order.Lines, hasArticle)
	})
	slices.SortFunc(found, func(a, b *types.Order) int { return cmp.Compare(b.Id, a.Id) })
	return found[:min(len(found), max(0, int(request.GetLimit())))], nil
}

func (s *shop) Turnover(context.Context) (map[types.Currency]*types.Turnover, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turnover := map[types.Currency]*types.Turnover{}
	for _, order := range s.orders {
		if order.Status == types.Status_CANCELLED || order.Status == types.Status_RETURNED {
			continue
		}
		sold := turnover[order.Currency]
		if sold == nil {
			sold = &types.Turnover{Totals: &types.Totals{}, Pieces: map[string]int64{}}
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

func (s *shop) Stock(_ context.Context, sku string) (int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left, ok := s.stock[sku]; ok {
		return left, nil
	}
	return 0, &types.NotFound{What: fmt.Sprintf("article %.40q", sku)}
}

func (s *shop) Product(_ context.Context, sku string) (*types.Product, error) {
	for _, product := range s.catalogue {
		if product.Sku == sku {
			return product, nil
		}
	}
	return nil, &types.NotFound{What: fmt.Sprintf("article %.40q", sku)}
}

func (s *shop) Viewed(_ context.Context, id types.OrderId) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.orders[id]; ok {
		s.views[id]++
	}
	return nil
}

func (s *shop) Views(_ context.Context, id types.OrderId) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.views[id], nil
}

func (s *shop) Advance(_ context.Context, id types.OrderId, status types.Status) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, ok := s.orders[id]
	switch {
	case !ok:
		return &types.NotFound{What: fmt.Sprintf("order %d", id)}
	case status <= order.Status || status > types.Status_RETURNED:
		return &types.InvalidOrder{Field: "status", Reason: fmt.Sprintf("%v does not come after %v", status, order.Status)}
	}
	next := *order
	next.Status = status
	next.History = map[types.Status]int64{status: time.Now().UnixMilli()}
	maps.Copy(next.History, order.History)
	if status == types.Status_SHIPPED {
		code := fmt.Sprintf("FL%09d", id)
		next.TrackingCode = &code
	}
	s.orders[id] = &next
	return nil
}

func (s *shop) Stocktake(ctx context.Context, request *types.StocktakeRequest) (*types.Stocktake, error) {
	report := &types.Stocktake{Pieces: map[string]int32{}, Empty: []string{}}
	for _, product := range s.catalogue {
		if len(request.Skus) > 0 && !slices.Contains(request.Skus, product.Sku) {
			continue
		}
		select {
		case <-time.After(time.Duration(request.MillisecondsPerArticle) * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("counting stopped at %s: %w", product.Sku, ctx.Err())
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
