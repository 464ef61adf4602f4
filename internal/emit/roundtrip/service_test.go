package roundtrip_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit"
	inheritthrift "github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/thrift"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/value"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// loopback is a server and a client without a network: it encodes and decodes
// everything, and checks that a method is registered before it is called.
type loopback struct {
	implementation any
	methods        map[*fulmar.MethodDesc]bool
}

func (l *loopback) RegisterService(desc *fulmar.ServiceDesc, implementation any) {
	l.implementation, l.methods = implementation, map[*fulmar.MethodDesc]bool{}
	for _, method := range desc.Methods {
		l.methods[method] = method.Service == desc.Name
	}
}

func (l *loopback) Call(ctx context.Context, method *fulmar.MethodDesc, request, reply any, _ ...fulmar.CallOption) error {
	if !l.methods[method] || method.Oneway != (reply == nil) {
		return errors.New("unknown method " + method.Service + "." + method.Name)
	}
	received := method.NewRequest()
	if err := transfer(request, received); err != nil {
		return err
	}
	var answer any
	var err error
	if method.InvokeInto == nil {
		answer, err = method.Invoke(ctx, l.implementation, received)
	} else {
		answer = method.NewReply()
		err = method.InvokeInto(ctx, l.implementation, received, answer)
	}
	if err != nil && method.Exception != nil {
		if exception := method.Exception(err); exception != nil {
			answer, err = exception, nil
		}
	}
	if err != nil || method.Oneway {
		return err
	}
	if err := transfer(answer, reply); err != nil {
		return err
	}
	return reply.(interface{ ReplyError() error }).ReplyError()
}

func transfer(from, to any) error {
	message, err := thrift.Marshal(from.(thrift.Struct))
	if err != nil {
		return err
	}
	return thrift.Unmarshal(message, to.(thrift.Struct))
}

// shop answers with what the test puts into it.
type shop struct {
	order  *orders.Order
	err    error
	viewed orders.OrderID
	reason string
}

func (s *shop) Place(_ context.Context, request *orders.PlaceRequest) (*orders.Order, error) {
	if s.order != nil {
		s.order.Items = request.Items
	}
	return s.order, s.err
}
func (s *shop) Viewed(_ context.Context, orderID int64) error { s.viewed = orderID; return s.err }
func (s *shop) Count(_ context.Context, _ orders.Status, skus []string) (int64, error) {
	return int64(len(skus)), s.err
}
func (s *shop) All(context.Context) ([]orders.Order, error) { return nil, s.err }
func (s *shop) Cancel(_ context.Context, _ int64, reason string) error {
	s.reason = reason
	return s.err
}
func (s *shop) Ping(context.Context) error  { return s.err }
func (s *shop) Touch(context.Context) error { return s.err }
func (s *shop) StatusOf(context.Context, int64) (orders.Status, error) {
	return orders.Status_PAID, s.err
}
func (s *shop) Invoice(context.Context, orders.OrderID) (invoice []byte, _ error) { return nil, s.err }

func newShop(s *shop) orders.OrdersClient {
	network := &loopback{}
	orders.RegisterOrdersServer(network, s)
	return orders.NewOrdersClient(network)
}

func TestService_Replies(t *testing.T) {
	ctx := t.Context()
	s := &shop{order: &orders.Order{ID: 7}}
	api := newShop(s)
	order, err := api.Place(ctx, &orders.PlaceRequest{Customer: "c", Items: []orders.Item{{Sku: "a", Quantity: 2}}})
	if err != nil || order.ID != 7 || len(order.Items) != 1 || order.Items[0].Quantity != 2 {
		t.Errorf("place: %+v, %v", order, err)
	}
	if count, err := api.Count(ctx, orders.Status_NEW, []string{"a", "b"}); err != nil || count != 2 {
		t.Errorf("count: %d, %v", count, err)
	}
	if count, err := api.Count(ctx, orders.Status_NEW, nil); err != nil || count != 0 {
		t.Errorf("count of nothing: %d, %v", count, err)
	}
	if all, err := api.All(ctx); err != nil || all == nil {
		t.Errorf("nil result: %v, %v", all, err)
	}
	if invoice, err := api.Invoice(ctx, 1); err != nil || invoice == nil {
		t.Errorf("nil binary: %v, %v", invoice, err)
	}
	if status, err := api.StatusOf(ctx, 1); err != nil || status != orders.Status_PAID {
		t.Errorf("status: %v, %v", status, err)
	}
	if err := api.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := api.Viewed(ctx, 5); err != nil || s.viewed != 5 {
		t.Errorf("viewed: %d, %v", s.viewed, err)
	}
}

func TestService_Errors(t *testing.T) {
	ctx := t.Context()
	sold := &orders.OutOfStock{Sku: "a", Left: 1}
	_, err := newShop(&shop{err: errors.Join(errors.New("wrapped"), sold)}).Place(ctx, &orders.PlaceRequest{})
	if got, ok := errors.AsType[*orders.OutOfStock](err); !ok || !reflect.DeepEqual(got, sold) {
		t.Errorf("declared exception arrived as %v", err)
	}
	other := errors.New("other")
	for name, call := range map[string]func(orders.OrdersClient) error{
		"place":  func(api orders.OrdersClient) error { _, err := api.Place(ctx, &orders.PlaceRequest{}); return err },
		"count":  func(api orders.OrdersClient) error { _, err := api.Count(ctx, 0, nil); return err },
		"all":    func(api orders.OrdersClient) error { _, err := api.All(ctx); return err },
		"cancel": func(api orders.OrdersClient) error { return api.Cancel(ctx, 1, "") },
		"ping":   func(api orders.OrdersClient) error { return api.Ping(ctx) },
	} {
		if err := call(newShop(&shop{err: other})); err != other {
			t.Errorf("%s: undeclared error arrived as %v", name, err)
		}
		var exception *orders.Forbidden
		if err := call(newShop(&shop{err: exception})); err == nil {
			t.Errorf("%s: a nil exception is no success", name)
		}
	}
	if err := newShop(&shop{err: new(orders.Forbidden)}).Cancel(ctx, 1, ""); !isForbidden(err) {
		t.Errorf("exception of a void method arrived as %v", err)
	}
}

func isForbidden(err error) bool {
	_, ok := errors.AsType[*orders.Forbidden](err)
	return ok
}

func TestService_NothingIsNoReply(t *testing.T) {
	_, err := newShop(&shop{}).Place(t.Context(), &orders.PlaceRequest{})
	wantError(t, err, "Orders.place")
	if err := new(orders.OrdersCountResult).ReplyError(); err == nil {
		t.Error("a reply without a result is one")
	}
	if err := new(orders.OrdersPingResult).ReplyError(); err != nil {
		t.Errorf("a void reply needs no result: %v", err)
	}
}

func TestService_StructArgumentsAreNeverNil(t *testing.T) {
	_, err := newShop(&shop{}).Place(t.Context(), nil)
	wantError(t, err, "Orders.place", "request", "nil")
	request := new(values.DefaultsGetArgs)
	if err := read(t, request, func(*message) {}); err != nil {
		t.Fatal(err)
	}
	if request.Settings == nil || request.Settings.Retries != 3 {
		t.Errorf("arguments %+v", request)
	}
}

// TestService_ArgumentsHaveDefaults calls with arguments that the peer's
// definition does not know.
func TestService_ArgumentsHaveDefaults(t *testing.T) {
	s := &shop{}
	network := &loopback{}
	orders.RegisterOrdersServer(network, s)
	for _, method := range orders.OrdersServiceDesc.Methods {
		if method.Name != "cancel" {
			continue
		}
		empty := fields(func(*message) {})
		if err := network.Call(t.Context(), method, empty, new(orders.OrdersCancelResult)); err != nil {
			t.Fatal(err)
		}
	}
	if s.reason != "unknown" {
		t.Errorf("reason %q", s.reason)
	}
}

// family is a server for a service that extends another package's.
type family struct{ touched int32 }

func (f *family) Ping(context.Context) error { return nil }
func (f *family) Get(_ context.Context, id int32) (*inheritthrift.Common, error) {
	if id == 0 {
		return nil, &inheritthrift.Gone{What: "zero"}
	}
	return &inheritthrift.Common{ID: id}, nil
}
func (f *family) Touch(_ context.Context, common *inheritthrift.Common) error {
	f.touched = common.ID
	return nil
}
func (f *family) Combine(_ context.Context, v *value.Value, common *inheritthrift.Common, kind value.Kind) (*value.Value, error) {
	return &value.Value{Kind: kind, N: v.N + int64(common.ID)}, nil
}
func (f *family) All(context.Context, map[string]*value.Value) (inheritthrift.Commons, error) {
	return nil, nil
}

func TestService_InheritsMethods(t *testing.T) {
	ctx := t.Context()
	network, server := &loopback{}, &family{}
	inherit.RegisterGrandchildServer(network, server)
	api := inherit.NewGrandchildClient(network)
	var base inheritthrift.BaseClient = api
	if err := base.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	if common, err := base.Get(ctx, 3); err != nil || common.ID != 3 {
		t.Errorf("get: %+v, %v", common, err)
	}
	_, err := base.Get(ctx, 0)
	if gone, ok := errors.AsType[*inheritthrift.Gone](err); !ok || gone.What != "zero" {
		t.Errorf("get: %v", err)
	}
	if err := api.Touch(ctx, &inheritthrift.Common{ID: 4}); err != nil || server.touched != 4 {
		t.Errorf("touch: %d, %v", server.touched, err)
	}
	if sum, err := api.Combine(ctx, &value.Value{N: 1}, &inheritthrift.Common{ID: 2}, value.Kind_B); err != nil || sum.N != 3 || sum.Kind != value.Kind_B {
		t.Errorf("combine: %+v, %v", sum, err)
	}
	if all, err := api.All(ctx, nil); err != nil || all == nil {
		t.Errorf("all: %v, %v", all, err)
	}
}
