package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/examples/orders/data"
	"github.com/fulmar-rpc/fulmar/examples/orders/gen/orders"
	"github.com/fulmar-rpc/fulmar/examples/orders/shop"
)

// runningServer is a server and the text it logged.
type runningServer struct {
	address string
	log     *logText
	server  *fulmar.Server
	// counting gets a value when a stocktake begins.
	counting chan struct{}
	cancel   context.CancelFunc
	served   chan error
}

// startShop serves a shop, as config says and with what the steps need of it.
func startShop(ctx context.Context, implementation *shop.Shop, config fulmar.ServerConfig) (*runningServer, error) {
	counting := make(chan struct{}, 1)
	config.MaxMessageBytes = messageLimit
	config.Interceptors = append(slices.Clip(config.Interceptors),
		fulmar.OnlyFor(func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			select {
			case counting <- struct{}{}:
			default:
			}
			return next(ctx, call)
		}, orders.OrdersStocktakeFullMethodName))
	running, err := start(ctx, config, func(server *fulmar.Server) { orders.RegisterOrdersServer(server, implementation) })
	if err != nil {
		return nil, err
	}
	running.counting = counting
	return running, nil
}

// start serves on a free port. register may be nil.
func start(ctx context.Context, config fulmar.ServerConfig, register func(*fulmar.Server)) (*runningServer, error) {
	log := &logText{}
	config.Address, config.Logger = "127.0.0.1:0", log.logger()
	server, err := fulmar.NewServer(config)
	if err != nil {
		return nil, err
	}
	if register != nil {
		register(server)
	}
	address, err := server.Listen()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	running := &runningServer{address: address.String(), log: log, server: server, cancel: cancel, served: make(chan error, 1)}
	go func() { running.served <- server.Serve(ctx) }()
	return running, nil
}

// accepted returns how many connections the server has taken since it started.
func (s *runningServer) accepted() uint64 { return s.server.Stats().Network.Accepted }

// stop ends the server, if that was not done before.
func (s *runningServer) stop() { s.cancel() }

// end ends the server and waits for it. It is called once, if nobody else waits.
func (s *runningServer) end(ctx context.Context) error {
	s.cancel()
	if err := await(ctx, s.served); err != nil {
		return fmt.Errorf("ending a server: %w", err)
	}
	return nil
}

// openedShop is a shop of its own for some steps, and what it started with.
type openedShop struct {
	*runningServer
	expected *shop.File
}

// openShop serves a shop that nobody has called yet.
func openShop(ctx context.Context, config fulmar.ServerConfig) (*openedShop, error) {
	// One copy for the shop, one to compare its answers with.
	file, err := shop.ReadFile(data.Orders)
	if err != nil {
		return nil, err
	}
	expected, err := shop.ReadFile(data.Orders)
	if err != nil {
		return nil, err
	}
	server, err := startShop(ctx, shop.New(file), config)
	if err != nil {
		return nil, err
	}
	return &openedShop{runningServer: server, expected: expected}, nil
}

// visit lets call use a client of the shop.
func (s *openedShop) visit(over string, config fulmar.ClientConfig, call func(*visit)) error {
	if config.Target == "" {
		config.Target = s.address
	}
	visit, err := newVisit("Go", over, config, s.expected)
	if err != nil {
		return err
	}
	defer visit.close()
	call(visit)
	return nil
}

// await returns what arrives on result, or why ctx ended first.
func await(ctx context.Context, result <-chan error) error {
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wantRefusal returns what an error says, and whether the call was executed, if it
// has the code and that contains text.
func wantRefusal(err error, code fulmar.Code, text string) (string, error) {
	var refused *fulmar.Error
	if !errors.As(err, &refused) {
		return "", fmt.Errorf("got %v, want a refusal: %s", err, text)
	}
	got := fmt.Sprintf("%s (%v)", refused.Message(), refused.Executed())
	if refused.Code() != code || !strings.Contains(got, text) {
		return "", fmt.Errorf("got %w, want %v: %s", err, code, text)
	}
	return fmt.Sprintf("%v: %s", code, got), nil
}
