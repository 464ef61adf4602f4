package compat_test

import (
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// watcher is a service that says what its handlers find in their context.
type watcher struct {
	testpb.UnimplementedTestServiceServer
	seen chan sight
	// next is called first, with the metadata that came; nil for nobody.
	next atomic.Pointer[closer]
}

// sight is what a handler has found.
type sight struct {
	metadata metadata.MD
	method   string
	// stream is grpc.ServerTransportStreamFromContext, and named what that calls the method.
	stream bool
	named  string
	peer   bool
	errors []bool
}

func (w *watcher) look(ctx context.Context) {
	var s sight
	s.metadata, _ = metadata.FromIncomingContext(ctx)
	s.method, _ = grpc.Method(ctx)
	if stream := grpc.ServerTransportStreamFromContext(ctx); stream != nil {
		s.stream, s.named = true, stream.Method()
	}
	who, ok := peer.FromContext(ctx)
	s.peer = ok && who.AuthInfo == nil && who.Addr.Network() == "tcp" && who.LocalAddr.Network() == "tcp"
	for _, err := range []error{
		grpc.SetHeader(ctx, metadata.Pairs("h", "1")), grpc.SendHeader(ctx, metadata.Pairs("h", "2")),
		grpc.SetHeader(ctx, metadata.Pairs("late", "1")), grpc.SendHeader(ctx, metadata.Pairs("late", "1")), grpc.SetTrailer(ctx, metadata.Pairs("t", "1")),
	} {
		s.errors = append(s.errors, err != nil)
	}
	w.seen <- s
}

// UnaryCall answers with nothing.
func (w *watcher) UnaryCall(ctx context.Context, request *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if next := w.next.Swap(nil); next != nil {
		md, _ := metadata.FromIncomingContext(ctx)
		return testpb.NewTestServiceClient(*next).UnaryCall(metadata.NewOutgoingContext(ctx, md), request)
	}
	w.look(ctx)
	return &testpb.SimpleResponse{}, nil
}

// FullDuplexCall ends at once.
func (w *watcher) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	w.look(stream.Context())
	return nil
}

// watch makes a unary call and a stream, and returns what the handlers saw, and how it came back.
func watch(t *testing.T, conn grpc.ClientConnInterface, seen chan sight, md metadata.MD) (unary, stream sight, back []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), md), time.Minute)
	defer cancel()
	api := testpb.NewTestServiceClient(conn)
	var header, trailer metadata.MD
	if _, err := api.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		t.Fatal(err)
	}
	unary, back = <-seen, append(back, strings.Join(header.Get("h"), " "), strings.Join(trailer.Get("t"), " "))
	opened, err := api.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	stream = <-seen
	if header, err = opened.Header(); err != nil {
		t.Fatal(err)
	}
	return unary, stream, append(back, strings.Join(header.Get("h"), " "), strings.Join(opened.Trailer().Get("t"), " "))
}

// serveBoth serves a service here and with grpc-go.
func serveBoth(t *testing.T, w testpb.TestServiceServer) (here, there string) {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	testpb.RegisterTestServiceServer(grpccompat.NewRegistrar(server, grpccompat.ServerConfig{}), w)
	address, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := grpc.NewServer()
	testpb.RegisterTestServiceServer(other, w)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 2)
	go func() { served <- server.Serve(ctx) }()
	go func() { served <- other.Serve(listener) }()
	t.Cleanup(func() {
		stop()
		other.Stop()
		for range 2 {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	})
	return address.String(), listener.Addr().String()
}

// TestHandlers_SeeTheSame: handlers find in their context what they find on a server of grpc-go,
// whoever calls.
func TestHandlers_SeeTheSame(t *testing.T) {
	w := &watcher{seen: make(chan sight, 1)}
	here, there := serveBoth(t, w)
	md := metadata.MD{
		"tag": {"a", "", "b"}, "empty": {""}, "raw-bin": {"\x00\xff", "2"}, "empty-bin": {""}, "authorization": {"x"}, "under_score.dot": {"1"},
		"rpc-persist-user-id": {"1", "2"}, "rpc-transit-trace": {"3", "4"}, "source-service": {"caller"},
	}
	for name, dial := range map[string]func(*testing.T, string) closer{"grpc-go calls": dialThere, "our client calls": dialHere} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := dial(t, here), dial(t, there)
			unary, stream, back := watch(t, ours, w.seen, md)
			unaryThere, streamThere, backThere := watch(t, theirs, w.seen, md)
			compare(t, "unary", unary, unaryThere, here, there)
			compare(t, "stream", stream, streamThere, here, there)
			if !slices.Equal(back, backThere) {
				t.Errorf("came back: %q, want %q", back, backThere)
			}
			for _, conn := range []closer{ours, theirs} {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func compare(t *testing.T, kind string, got, want sight, here, there string) {
	t.Helper()
	if authority := got.metadata.Get(":authority"); len(authority) != 1 || authority[0] != here {
		t.Errorf("%s: :authority %q, want %s", kind, authority, here)
	}
	want.metadata[":authority"] = []string{here}
	if !maps.EqualFunc(got.metadata, want.metadata, slices.Equal) {
		t.Errorf("%s: metadata\n%q, want\n%q", kind, got.metadata, want.metadata)
	}
	if got.method != want.method || got.stream != want.stream || got.named != want.named || got.peer != want.peer || !slices.Equal(got.errors, want.errors) {
		t.Errorf("%s: %+v, want %+v", kind, got, want)
	}
}

// TestHandlers_PassOn: a proxy of ours between two of grpc-go changes nothing of what has a value.
func TestHandlers_PassOn(t *testing.T) {
	w := &watcher{seen: make(chan sight, 1)}
	here, there := serveBoth(t, w)
	caller, proxy := dialThere(t, here), dialHere(t, there)
	w.next.Store(&proxy)
	md := metadata.MD{"tag": {"a", "b"}, "raw-bin": {"\x00\xff", "2"}, "rpc-persist-user-id": {"1", "2"}, "rpc-persist-raw-bin": {"1", "2"}, "rpc-transit-trace": {"3", "4"}}
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), md), time.Minute)
	defer cancel()
	if _, err := testpb.NewTestServiceClient(caller).UnaryCall(ctx, &testpb.SimpleRequest{}); err != nil {
		t.Fatal(err)
	}
	got := (<-w.seen).metadata
	for key, values := range md {
		if !slices.Equal(got.Get(key), values) {
			t.Errorf("%s: %q, want %q", key, got.Get(key), values)
		}
	}
	for _, conn := range []closer{caller, proxy} {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
