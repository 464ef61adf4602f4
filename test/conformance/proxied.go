package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/conformance/gen/quotes"
)

// behind is a server behind a proxy. It tells callers what came of what they sent.
type behind struct {
	market
	server  *fulmar.Server
	address string
	served  chan error
	cancel  context.CancelFunc
	stopped bool
	// left gets how each stream ended that Trade has served, calls counts those of Last.
	left  chan<- error
	calls atomic.Int64
}

// newBehind starts one, with TLS if there is an identity.
func newBehind(files identity, left chan error) (*behind, error) {
	b := &behind{served: make(chan error, 1), left: left}
	config := fulmar.ServerConfig{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	if files != (identity{}) {
		config.TLS.Files = fulmar.CertificateFiles{Certificate: files.certificate, Key: files.key}
	}
	var err error
	if b.server, err = fulmar.NewServer(config); err != nil {
		return nil, err
	}
	quotes.RegisterQuotesServer(b.server, b)
	address, err := b.server.Listen()
	if err != nil {
		return nil, err
	}
	b.address = address.String()
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() { b.served <- b.server.Serve(ctx) }()
	return b, nil
}

// stop ends it gracefully.
func (b *behind) stop() {
	if !b.stopped {
		b.stopped = true
		b.cancel()
		<-b.served
	}
}

// Last sends what it has received as metadata back, in front of its answer and behind it, and
// whether there is a deadline.
func (b *behind) Last(ctx context.Context, symbol *quotes.Symbol) (*quotes.Quote, error) {
	b.calls.Add(1)
	call, _ := fulmar.CallFrom(ctx)
	text, _ := call.Metadata().Transient("x-text")
	bytes, _ := call.Metadata().Transient("x-bytes-bin")
	_, limited := ctx.Deadline()
	err := errors.Join(fulmar.SetReplyMetadata(ctx, "x-text", text), fulmar.SetReplyMetadata(ctx, "x-bytes-bin", bytes),
		fulmar.SetReplyTrailer(ctx, "x-deadline", fmt.Sprint(limited)))
	if err != nil {
		return nil, err
	}
	return b.market.Last(ctx, symbol)
}

// Trade is the market's, and tells how it ended.
func (b *behind) Trade(stream fulmar.BidiStreamingServer[quotes.Order, quotes.Quote]) error {
	err := b.market.Trade(stream)
	select {
	case b.left <- err:
	default: // nobody asks
	}
	return err
}

// throughProxy makes calls of all kinds.
func throughProxy(ctx context.Context, client *fulmar.Client, out io.Writer, name string) error {
	api := quotes.NewQuotesClient(client)
	for _, c := range []struct {
		what string
		do   func(context.Context, quotes.QuotesClient) error
	}{
		{"unary, metadata, trailers, deadline", proxiedCall},
		{"error", proxiedError},
		{"server stream", proxiedWatch},
		{"client stream", proxiedFill},
		{"both, 4 MiB", proxiedTrade},
		{"cancel", proxiedCancel},
		{"too late", proxiedLate},
	} {
		if err := c.do(ctx, api); err != nil {
			return fmt.Errorf("%s: %s: %w", name, c.what, err)
		}
		fmt.Fprintf(out, "%s: %s: ok\n", name, c.what)
	}
	return nil
}

func proxiedCall(ctx context.Context, api quotes.QuotesClient) error {
	ctx = fulmar.WithTransient(ctx, "x-text", "any text")
	ctx = fulmar.WithTransient(ctx, "x-bytes-bin", "\x00\xff\n")
	var header, trailer fulmar.Metadata
	quote, err := api.Last(ctx, &quotes.Symbol{Name: "TEA"}, fulmar.ReceiveReply(&header, &trailer))
	if err != nil || quote.GetCents() != 460 {
		return fmt.Errorf("%v, %w", quote, err)
	}
	for _, want := range []struct {
		in         fulmar.Metadata
		key, value string
	}{{header, "x-text", "any text"}, {header, "x-bytes-bin", "\x00\xff\n"}, {trailer, "x-deadline", "true"}} {
		got := ""
		for key, value := range want.in.All() {
			if key == want.key {
				got = value
			}
		}
		if got != want.value {
			return fmt.Errorf("%s is %q, want %q", want.key, got, want.value)
		}
	}
	return nil
}

func proxiedError(ctx context.Context, api quotes.QuotesClient) error {
	_, err := api.Last(ctx, &quotes.Symbol{Name: "gold"})
	var failed *fulmar.Error
	if !errors.As(err, &failed) || failed.Code() != fulmar.NotFound || failed.Message() != `no symbol "gold"` || failed.Executed() != fulmar.ExecutedYes {
		return fmt.Errorf("it ends with %w", err)
	}
	return nil
}

func proxiedWatch(ctx context.Context, api quotes.QuotesClient) error {
	stream, err := api.Watch(ctx, &quotes.Symbol{Name: "TEA"})
	if err != nil {
		return err
	}
	count := int64(0)
	for quote, err := range stream.All() {
		if count++; err != nil || quote.GetCents() != count {
			return fmt.Errorf("message %d is %v, %w", count, quote, err)
		}
	}
	if count != 3 {
		return fmt.Errorf("%d messages", count)
	}
	return nil
}

func proxiedFill(ctx context.Context, api quotes.QuotesClient) error {
	stream, err := api.Fill(ctx)
	if err != nil {
		return err
	}
	for range 1000 {
		if err := stream.Send(&quotes.Order{Quantity: 2}); err != nil {
			return err
		}
	}
	total, err := stream.CloseAndRecv()
	if err != nil || total.GetOrders() != 1000 || total.GetCents() != 2000 {
		return fmt.Errorf("%v, %w", total, err)
	}
	return nil
}

func proxiedTrade(ctx context.Context, api quotes.QuotesClient) error {
	stream, err := api.Trade(ctx)
	if err != nil {
		return err
	}
	for _, length := range []int{0, 1000, 4 << 20, 10} {
		if err := stream.Send(&quotes.Order{Symbol: strings.Repeat("x", length), Quantity: 7}); err != nil {
			return err
		}
		if quote, err := stream.Recv(); err != nil || len(quote.GetSymbol()) != length || quote.GetCents() != 7 {
			return fmt.Errorf("%d bytes come back as %d, %w", length, len(quote.GetSymbol()), err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != io.EOF {
		return fmt.Errorf("it ends with %w", err)
	}
	return nil
}

// proxiedCancel begins a stream, and gives it up. Whether the server learns of that is asked
// by who has the server.
func proxiedCancel(ctx context.Context, api quotes.QuotesClient) error {
	stream, err := api.Trade(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&quotes.Order{Quantity: 1}); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	stream.Cancel()
	if _, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.Canceled {
		return fmt.Errorf("it ends with %w", err)
	}
	return nil
}

func proxiedLate(ctx context.Context, api quotes.QuotesClient) error {
	stream, err := api.Trade(ctx, fulmar.Timeout(300*time.Millisecond))
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
		return fmt.Errorf("it ends with %w", err)
	}
	return nil
}

// canceled waits until one of the streams that servers had was canceled by its caller.
func canceled(left <-chan error) error {
	var others []error
	for {
		select {
		case err := <-left:
			if fulmar.CodeOf(err) == fulmar.Canceled {
				return nil
			}
			others = append(others, err)
		case <-time.After(20 * time.Second):
			return fmt.Errorf("no server was told that a caller has gone, but %v", others)
		}
	}
}

// restartBehindProxy makes calls while one of two servers is stopped gracefully: none fails.
func restartBehindProxy(ctx context.Context, address string, goes, stays *behind, out io.Writer) error {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Protocol: fulmar.GRPC, ConnectTimeout: time.Minute, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer client.Close()
	api := quotes.NewQuotesClient(client)
	const callers, calls = 4, 200
	failed := make(chan error, callers)
	var made atomic.Int64
	before := stays.calls.Load() + goes.calls.Load()
	for range callers {
		go func() {
			for range calls {
				if _, err := api.Last(ctx, &quotes.Symbol{Name: "TEA"}); err != nil {
					failed <- fmt.Errorf("call %d: %w", made.Load(), err)
					return
				}
				made.Add(1)
			}
			failed <- nil
		}()
	}
	for ctx.Err() == nil && made.Load() < callers*calls/4 {
		time.Sleep(time.Millisecond)
	}
	goes.stop()
	var problems []error
	for range callers {
		problems = append(problems, <-failed)
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("a server behind the proxy was stopped: %w", err)
	}
	if got := stays.calls.Load() + goes.calls.Load() - before; got != callers*calls {
		return fmt.Errorf("a server behind the proxy was stopped: %d calls were served, of %d that were made", got, callers*calls)
	}
	fmt.Fprintf(out, "a server behind the proxy was stopped: %d calls, none failed\n", callers*calls)
	return nil
}

// proxyFails looks at what callers are told when no server is left, and when the proxy dies.
func proxyFails(ctx context.Context, proxy *nginx, last *behind, out io.Writer) error {
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: proxy.plain, Protocol: fulmar.GRPC, ConnectTimeout: time.Minute, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer client.Close()
	api := quotes.NewQuotesClient(client)
	stream, err := api.Trade(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&quotes.Order{Quantity: 1}); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	// Its page in HTML says 502, which is UNAVAILABLE where there is no grpc-status.
	stopped := make(chan struct{})
	go func() { last.stop(); close(stopped) }()
	for err == nil {
		_, err = api.Last(ctx, &quotes.Symbol{Name: "TEA"})
	}
	if fulmar.CodeOf(err) != fulmar.Unavailable || !strings.Contains(err.Error(), "502") {
		return fmt.Errorf("no server is left, and a call ends with %w", err)
	}
	fmt.Fprintln(out, "no server behind the proxy:", err)
	proxy.kill()
	if _, err = stream.Recv(); fulmar.CodeOf(err) != fulmar.Unavailable {
		return fmt.Errorf("the proxy was killed, and a stream ends with %w", err)
	}
	fmt.Fprintln(out, "the proxy was killed:", err)
	<-stopped
	return nil
}
