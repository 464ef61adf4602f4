package grpccompat_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// only returns what of md has keys that a test has set.
func only(md metadata.MD, keys ...string) map[string][]string {
	some := map[string][]string{}
	for _, key := range keys {
		if values := md.Get(key); values != nil {
			some[key] = values
		}
	}
	return some
}

func sameMD(a, b map[string][]string) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]string])
}

// TestUnary_Metadata: metadata in both directions with several values and bytes, header apart
// from trailer, and what a handler knows of its call.
func TestUnary_Metadata(t *testing.T) {
	sent := map[string][]string{"tag": {"a", "b"}, "raw-bin": {"\x00\xff", "2"}, "one": {"1"}}
	header := map[string][]string{"h": {"1", "2", "3"}, "h-bin": {"\x01"}}
	trailer := map[string][]string{"t": {"1", "2"}}
	fails, arrives := false, sent
	s := &service{unary: func(ctx context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		md, ok := metadata.FromIncomingContext(ctx)
		if got := only(md, "tag", "raw-bin", "one", "grpc-timeout"); !ok || !sameMD(got, arrives) {
			t.Errorf("arrived: %q", got)
		}
		who, ok := peer.FromContext(ctx)
		if !ok || who.Addr == nil || who.AuthInfo != nil {
			t.Errorf("the peer is %v", who)
		}
		if method, ok := grpc.Method(ctx); !ok || method != testpb.TestService_UnaryCall_FullMethodName {
			t.Errorf("the method is %q", method)
		}
		if _, ok := ctx.Deadline(); !ok {
			t.Error("there is no deadline")
		}
		if call, ok := fulmar.CallFrom(ctx); !ok || call.Method() != "UnaryCall" {
			t.Error("it is no call of Fulmar")
		}
		err := errors.Join(
			grpc.SetHeader(ctx, metadata.Pairs("h", "1", "h", "2")),
			grpc.SendHeader(ctx, metadata.Pairs("H", "3", "h-bin", "\x01", "fulmar-executed", "no")),
			grpc.SetTrailer(ctx, metadata.Pairs("t", "1")),
			grpc.SetTrailer(ctx, metadata.Pairs("t", "2")),
		)
		if err != nil {
			t.Error(err)
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("late", "1")); err == nil {
			t.Error("a header was set behind the header")
		}
		if fails {
			return nil, status.Error(codes.NotFound, "no")
		}
		return &testpb.SimpleResponse{Payload: request.GetPayload()}, nil
	}}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		local := strings.HasSuffix(t.Name(), "local")
		wantHeader, wantTrailer := header, trailer
		if arrives = sent; local {
			arrives = map[string][]string{"tag": {"a,b"}, "raw-bin": {"2"}, "one": {"1"}}
			wantHeader, wantTrailer = map[string][]string{"h": {"1,2,3"}, "h-bin": {"\x01"}, "t": {"1,2"}}, map[string][]string{}
		}
		for _, fails = range []bool{false, true} {
			ctx := metadata.NewOutgoingContext(t.Context(), metadata.Join(sent, metadata.Pairs("grpc-timeout", "1n", "empty", "", ":path", "/")))
			var gotHeader, gotTrailer metadata.MD
			response, err := ask(ctx, client, grpc.Header(&gotHeader), grpc.Trailer(&gotTrailer))
			if (err != nil) != fails || !fails && len(response.GetPayload().GetBody()) != 7 {
				t.Errorf("%v, %v", response, err)
			}
			keys := []string{"h", "h-bin", "t", "fulmar-executed", "late"}
			if !sameMD(only(gotHeader, keys...), wantHeader) || !sameMD(only(gotTrailer, keys...), wantTrailer) {
				t.Errorf("fails: %v: header %q and trailer %q, want %q and %q", fails, only(gotHeader, keys...), only(gotTrailer, keys...), wantHeader, wantTrailer)
			}
		}
	})
}

// TestUnary_PassesMetadataOn: what a handler gets it can send, as proxies do, and it comes to
// the next one as what it was.
func TestUnary_PassesMetadataOn(t *testing.T) {
	var arrived metadata.MD
	var user, request string
	s := &service{unary: func(ctx context.Context, message *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		arrived, _ = metadata.FromIncomingContext(ctx)
		call, _ := fulmar.CallFrom(ctx)
		user, _ = call.Metadata().Persistent("USER_ID")
		request, _ = call.Metadata().Transient("REQUEST_ID")
		return &testpb.SimpleResponse{Payload: message.GetPayload()}, nil
	}}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		ctx := fulmar.WithTransient(fulmar.WithPersistent(t.Context(), "USER_ID", "42"), "REQUEST_ID", "7")
		for range 2 {
			user, request = "", ""
			if _, err := ask(metadata.AppendToOutgoingContext(ctx, "tag", "a"), client); err != nil {
				t.Fatal(err)
			}
			if user != "42" || request != "7" || !slices.Equal(arrived["tag"], []string{"a"}) {
				t.Errorf("user %q, request %q, and %q", user, request, arrived)
			}
			arrived.Set("source-service", "of another call")
			arrived.Delete("tag")
			ctx = metadata.NewOutgoingContext(t.Context(), arrived.Copy())
		}
	})
}

// TestUnary_Errors: errors of handlers are statuses at the caller, with details, and errors
// of Fulmar as well.
func TestUnary_Errors(t *testing.T) {
	detailed, err := status.New(codes.FailedPrecondition, "too late").WithDetails(&testpb.Payload{Body: []byte("why")})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		err     error
		code    codes.Code
		message string
	}{
		{"a status", status.Error(codes.NotFound, "no such thing: ü"), codes.NotFound, "no such thing: ü"},
		{"with details", detailed.Err(), codes.FailedPrecondition, "too late"},
		{"wrapped", fmt.Errorf("while asking: %w", status.Error(codes.Aborted, "no")), codes.Aborted, "while asking: rpc error: code = Aborted desc = no"},
		{"any other", errors.New("oh"), codes.Unknown, "oh"},
		{"of a context", context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{"of Fulmar", fulmar.NewError(fulmar.ResourceExhausted, "enough"), codes.ResourceExhausted, "enough"},
	} {
		s := &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) { return nil, test.err }}
		t.Run(test.name, func(t *testing.T) {
			eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
				_, err := ask(t.Context(), client)
				got, ok := status.FromError(err)
				if !ok || got.Code() != test.code || got.Message() != test.message {
					t.Errorf("%v is %v %q, want %v %q", err, got.Code(), got.Message(), test.code, test.message)
				}
				if want := status.Convert(err).Err(); !errors.Is(err, want) || err.Error() != want.Error() {
					t.Errorf("%v is not %v", err, want)
				}
				var failed *fulmar.Error
				if !errors.As(err, &failed) || failed.Executed() != fulmar.ExecutedYes {
					t.Errorf("%v is no error of Fulmar for a call that was executed", err)
				}
				if test.name != "with details" || strings.HasSuffix(t.Name(), "local") {
					return
				}
				if details := got.Details(); len(details) != 1 || !proto.Equal(details[0].(proto.Message), &testpb.Payload{Body: []byte("why")}) {
					t.Errorf("details %v", details)
				}
			})
		})
	}
}

// TestUnary_BusinessError: what Fulmar has and gRPC has not is Internal for whoever does not
// know it.
func TestUnary_BusinessError(t *testing.T) {
	s := &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		return nil, fulmar.NewBusinessError(1001, "limit reached", nil)
	}}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		_, err := ask(t.Context(), client)
		var business *fulmar.BusinessError
		if status.Code(err) != codes.Internal || !errors.As(err, &business) || business.Status() != 1001 {
			t.Errorf("%v", err)
		}
	})
}

// TestUnary_Interceptors: those of grpc-go on both sides, in their order, inside of Fulmar's
// on the server, which see the message.
func TestUnary_Interceptors(t *testing.T) {
	var steps []string
	note := func(step string) { steps = append(steps, step) }
	atServer := func(name string) grpc.UnaryServerInterceptor {
		return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if _, ok := request.(*testpb.SimpleRequest); !ok || info.FullMethod != testpb.TestService_UnaryCall_FullMethodName || info.Server == nil {
				t.Errorf("%T, %+v", request, info)
			}
			note(name)
			return handler(ctx, request)
		}
	}
	atClient := func(name string) grpc.UnaryClientInterceptor {
		return func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption) error {
			note(name)
			return invoker(ctx, method, request, reply, cc, options...)
		}
	}
	with := setting{
		server: fulmar.ServerConfig{DecodedInterceptors: []fulmar.UnaryInterceptor{func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			request, err := call.Request()
			if _, ok := request.(*testpb.SimpleRequest); !ok || err != nil {
				t.Errorf("%T, %v", request, err)
			}
			note("fulmar")
			return next(ctx, call)
		}}},
		registrar: grpccompat.ServerConfig{UnaryInterceptors: []grpc.UnaryServerInterceptor{atServer("server 1"), atServer("server 2")}},
		client:    grpccompat.ClientConfig{UnaryInterceptors: []grpc.UnaryClientInterceptor{atClient("client 1"), atClient("client 2")}},
	}
	eachWay(t, &service{}, with, func(t *testing.T, client *grpccompat.Client) {
		steps = nil
		if _, err := ask(t.Context(), client); err != nil {
			t.Error(err)
		}
		if got, want := strings.Join(steps, ", "), "client 1, client 2, fulmar, server 1, server 2"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestUnary_Unimplemented: methods that a service leaves out, and those that nobody has.
func TestUnary_Unimplemented(t *testing.T) {
	eachWay(t, &service{}, setting{}, func(t *testing.T, client *grpccompat.Client) {
		api := testpb.NewTestServiceClient(client)
		if _, err := api.EmptyCall(t.Context(), &testpb.Empty{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("a method that is left out: %v", err)
		}
		for _, method := range []string{"/grpc.testing.TestService/None", "/none/None"} {
			if err := client.Invoke(t.Context(), method, &testpb.Empty{}, &testpb.Empty{}); status.Code(err) != codes.Unimplemented {
				t.Errorf("%s: %v", method, err)
			}
		}
		for _, method := range []string{"", "/", "x", "x/y", "/x", "/x/", "//"} {
			if err := client.Invoke(t.Context(), method, &testpb.Empty{}, &testpb.Empty{}); status.Code(err) != codes.Internal {
				t.Errorf("%q: %v", method, err)
			}
		}
	})
}
