package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
)

// Who calls the shop over TLS.
const (
	billing   = "billing"
	warehouse = "warehouse"
)

// callSecurely serves the shop over TLS to those who show a certificate, and calls it
// as somebody it knows and as others. All certificates are made here.
func callSecurely(ctx context.Context, report *report) (err error) {
	folder, err := os.MkdirTemp("", "fulmar-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	ours, err := newAuthority(folder, "ours")
	if err != nil {
		return err
	}
	files := map[string]fulmar.CertificateFiles{}
	for _, name := range []string{"orders", billing, warehouse} {
		if files[name], err = ours.issue(name); err != nil {
			return err
		}
	}
	// callers gets who made each call that was let in.
	callers := make(chan string, 1)
	shop, err := openShop(ctx, fulmar.ServerConfig{
		TLS: fulmar.ServerTLS{Files: files["orders"]},
		Interceptors: []fulmar.UnaryInterceptor{
			fulmar.OnlyFor(recordCaller(callers), orders.OrdersGetFullMethodName),
			fulmar.OnlyFor(onlyWarehouse, orders.OrdersAdvanceFullMethodName),
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.end(ctx)) }()
	for _, protocol := range []fulmar.Protocol{fulmar.Bare, fulmar.Framed, fulmar.TTHeader} {
		err := shop.visit("tls, "+protocol.String(), fulmar.ClientConfig{Protocol: protocol, TLS: fulmar.ClientTLS{Files: files[billing]}}, func(v *visit) {
			v.step(ctx, report, "Orders.get as billing", func(ctx context.Context) (string, error) { return v.known(ctx, callers, billing) })
		})
		if err != nil {
			return err
		}
	}
	if err := shop.visitAs(ctx, report, files); err != nil {
		return err
	}
	return shop.refuseUnknown(ctx, report, ours, folder)
}

// recordCaller tells who calls, as its certificate says.
func recordCaller(callers chan<- string) fulmar.UnaryInterceptor {
	return func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
		served, _ := fulmar.CallFrom(ctx)
		caller, _ := served.Identity()
		select {
		case callers <- strings.Join(caller.URIs(), " "):
		default:
		}
		return next(ctx, call)
	}
}

// onlyWarehouse refuses everybody else.
func onlyWarehouse(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	served, _ := fulmar.CallFrom(ctx)
	caller, known := served.Identity()
	if !known || caller.CommonName() != warehouse {
		return fulmar.Errorf(fulmar.PermissionDenied, "%s may not move orders on", caller.CommonName())
	}
	return next(ctx, call)
}

// known makes a call, and wants the server to know who made it.
func (v *visit) known(ctx context.Context, callers <-chan string, name string) (string, error) {
	got, err := v.get(ctx)
	if err != nil {
		return "", err
	}
	caller := <-callers // The call was answered, so this is there.
	return fmt.Sprintf("the server knows %s; %s", caller, got), expect("who called", caller, identity(name).String())
}

// visitAs makes a call that an interceptor lets one of two callers make.
func (s *openedShop) visitAs(ctx context.Context, report *report, files map[string]fulmar.CertificateFiles) error {
	var placed *orders.Order
	advance := func(v *visit) error { return v.api.Advance(ctx, placed.ID, orders.Status_PAID) }
	err := s.visit("tls, ttheader", fulmar.ClientConfig{TLS: fulmar.ClientTLS{Files: files[billing]}}, func(v *visit) {
		v.step(ctx, report, "refused by an interceptor", func(ctx context.Context) (_ string, err error) {
			if placed, err = v.api.Place(ctx, v.request()); err != nil {
				return "", err
			}
			return wantRefusal(advance(v), fulmar.PermissionDenied, "billing may not move orders on")
		})
	})
	if err != nil || placed == nil {
		return err
	}
	return s.visit("tls, ttheader", fulmar.ClientConfig{TLS: fulmar.ClientTLS{Files: files[warehouse]}}, func(v *visit) {
		v.step(ctx, report, "Orders.advance as warehouse", func(ctx context.Context) (string, error) {
			if err := advance(v); err != nil {
				return "", err
			}
			order, err := v.api.Get(ctx, placed.ID)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("order %d is %v", order.ID, order.Status), expect("the status", order.Status, orders.Status_PAID)
		})
	})
}

// refuseUnknown calls the server as clients whom it, or who, must not trust.
func (s *openedShop) refuseUnknown(ctx context.Context, report *report, ours *authority, folder string) error {
	theirs, err := newAuthority(folder, "theirs")
	if err != nil {
		return err
	}
	stranger, err := theirs.issue(billing)
	if err != nil {
		return err
	}
	distrustful := stranger
	stranger.Authorities = ours.file()
	for _, refused := range []struct {
		what string
		tls  fulmar.ClientTLS
		want string
	}{
		{"client without the authority", fulmar.ClientTLS{Files: distrustful}, "the server's certificate is signed by nobody whom this client trusts (not executed)"},
		{"client without a certificate", fulmar.ClientTLS{Files: fulmar.CertificateFiles{Authorities: ours.file()}}, "certificate required (not executed)"},
		{"certificate of another office", fulmar.ClientTLS{Files: stranger}, "unknown certificate authority (not executed)"},
		{"client without TLS", fulmar.ClientTLS{}, ""},
	} {
		err := s.visit("tls, ttheader", fulmar.ClientConfig{TLS: refused.tls}, func(v *visit) {
			v.step(ctx, report, refused.what, func(ctx context.Context) (string, error) {
				_, err := v.get(ctx)
				return wantRefusal(err, fulmar.Unavailable, refused.want)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
