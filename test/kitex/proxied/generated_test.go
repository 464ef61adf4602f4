package proxied_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/stock"
)

// larder implements the generated service as the handler of Kitex's server does.
type larder struct{}

var _ stock.PantryServer = (*larder)(nil)

func (*larder) Echo(_ context.Context, request *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	return request, nil
}

func (*larder) Fail(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	return nil, errors.New("no such jar")
}

func (*larder) Business(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	return nil, fulmar.NewBusinessError(1001, "not today", map[string]string{"left": "3"})
}

func (*larder) Missing(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	return wrapperspb.String("is there"), nil
}

func (*larder) Circumstances(ctx context.Context, _ *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	call, _ := fulmar.CallFrom(ctx)
	trace, _ := call.Metadata().Persistent("TRACE")
	return wrapperspb.String("trace " + trace), nil
}

// TestGenerated_ClientOfKitex calls a service that fulmar gen has made of a definition in
// Protobuf.
func TestGenerated_ClientOfKitex(t *testing.T) {
	address := serveAny(t, fulmar.ServerConfig{}, func(server *fulmar.Server) { stock.RegisterPantryServer(server, &larder{}) })
	for protocol, want := range map[string][]string{
		"framed": {`"Case":"echo","Reply":"hi"`, `"Reply":"the long text"`, `"Case":"fail","Exception":6,"Text":"no such jar"`,
			`"Case":"missing","Reply":"is there"`, `"Case":"circumstances","Reply":"trace "`, `"Case":"coded","Exception":1,`},
		"ttheader-framed": {`"Case":"echo","Reply":"hi"`, `"Reply":"the long text"`, `"Case":"fail","Exception":6,"Text":"no such jar"`,
			`"Case":"missing","Reply":"is there"`, `"Case":"circumstances","Reply":"trace 1"`,
			`"Case":"business","Status":1001,"Message":"not today","Extra":{"left":"3"}`, `"Case":"coded","Exception":1,`},
	} {
		all := strings.Join(outcomes(t, "protobuf-client", address, protocol), "\n")
		for _, part := range want {
			if !strings.Contains(all, part) {
				t.Errorf("%s: no %s in\n%s", protocol, part, all)
			}
		}
	}
}

// TestGenerated_ServerOfKitex is called by a client that fulmar gen has made.
func TestGenerated_ServerOfKitex(t *testing.T) {
	back := startServer(t, "protobuf-server")
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed} {
		api := stock.NewPantryClient(dial(t, back, protocol))
		ctx := fulmar.WithPersistent(t.Context(), "TRACE", "1")
		for _, text := range []string{"", "hi", strings.Repeat("x", 1<<20)} {
			if got, err := api.Echo(ctx, wrapperspb.String(text)); err != nil || got.GetValue() != text {
				t.Errorf("%v: %d bytes come back as %d, %v", protocol, len(text), len(got.GetValue()), err)
			}
		}
		if _, err := api.Fail(ctx, wrapperspb.String("x")); err == nil || !strings.Contains(err.Error(), "no such jar") {
			t.Errorf("%v: fail ends with %v", protocol, err)
		}
		if _, err := api.Missing(ctx, wrapperspb.String("x")); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%v: a method that is not there ends with %v", protocol, err)
		}
		if protocol == fulmar.Framed {
			continue // which carries neither
		}
		var business *fulmar.BusinessError
		if _, err := api.Business(ctx, wrapperspb.String("x")); !errors.As(err, &business) || business.Status() != 1001 {
			t.Errorf("%v: business ends with %v", protocol, err)
		}
		if got, err := api.Circumstances(ctx, wrapperspb.String("x")); err != nil || !strings.HasPrefix(got.GetValue(), "trace 1") {
			t.Errorf("%v: %v, %v", protocol, got, err)
		}
	}
}
