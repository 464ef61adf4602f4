package grpccompat_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// arrival is what a handler finds, in the words of each side.
type arrival struct {
	metadata metadata.MD
	pairs    []string
}

// arrivals returns a service that says what has arrived, and calls on first with what came.
func arrivals(into *[]arrival, next *atomic.Pointer[grpccompat.Client]) *service {
	return &service{unary: func(ctx context.Context, message *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		call, _ := fulmar.CallFrom(ctx)
		var pairs []string
		for key, value := range call.Metadata().All() {
			if strings.HasPrefix(key, "RPC_") {
				pairs = append(pairs, key+"="+value)
			}
		}
		slices.Sort(pairs)
		*into = append(*into, arrival{md, pairs})
		if client := next.Swap(nil); client != nil {
			return testpb.NewTestServiceClient(client).UnaryCall(metadata.NewOutgoingContext(ctx, md), message)
		}
		return &testpb.SimpleResponse{}, nil
	}}
}

// TestMetadata_OfKitex: what persistent and transient metadata become, and that a handler which
// passes all of it on changes nothing.
func TestMetadata_OfKitex(t *testing.T) {
	sent := metadata.MD{
		"rpc-persist-user-id": {"1", "2"}, "rpc-persist-under_score": {"1"}, "rpc-persist-raw-bin": {"\x01", "\x02"}, "rpc-persist-empty": {""},
		"rpc-transit-trace": {"3", "4"}, "Rpc-Transit-Upper": {"5"}, "tag": {"a"},
	}
	want := arrival{
		metadata.MD{
			"rpc-persist-user-id": {"1,2"}, "rpc-persist-under-score": {"1"}, "rpc-persist-raw-bin": {"\x02"},
			"rpc-transit-trace": {"3", "4"}, "rpc-transit-upper": {"5"}, "tag": {"a"},
		},
		[]string{
			"RPC_PERSIST_RAW_BIN=\x02", "RPC_PERSIST_UNDER_SCORE=1", "RPC_PERSIST_USER_ID=1,2",
			"RPC_TRANSIT_TRACE=3", "RPC_TRANSIT_TRACE=4", "RPC_TRANSIT_UPPER=5", "RPC_TRANSIT_tag=a",
		},
	}
	var seen []arrival
	var next atomic.Pointer[grpccompat.Client]
	eachWay(t, arrivals(&seen, &next), setting{}, func(t *testing.T, client *grpccompat.Client) {
		want := want
		if strings.HasSuffix(t.Name(), "local") {
			want.metadata = maps.Clone(want.metadata)
			want.metadata["rpc-transit-trace"] = []string{"3,4"}
			want.pairs = slices.Delete(slices.Clone(want.pairs), 3, 5)
			want.pairs = slices.Insert(want.pairs, 3, "RPC_TRANSIT_TRACE=3,4")
		}
		seen = nil
		next.Store(client)
		if _, err := ask(metadata.NewOutgoingContext(t.Context(), sent), client); err != nil || len(seen) != 2 {
			t.Fatalf("%v, %d calls", err, len(seen))
		}
		for i, got := range seen {
			delete(got.metadata, ":authority")
			for _, key := range []string{"content-type", "user-agent", "grpc-accept-encoding", "source-method"} {
				got.metadata.Delete(key)
			}
			if !sameMD(got.metadata, want.metadata) || !slices.Equal(got.pairs, want.pairs) {
				t.Errorf("call %d: %q\n%q, want %q\n%q", i+1, got.metadata, got.pairs, want.metadata, want.pairs)
			}
		}
	})
}

// TestMetadata_KeepsSpelling: keys of Fulmar that are not in UPPER_SNAKE, which only calls within
// the process have, are the same behind a handler that passes everything on.
func TestMetadata_KeepsSpelling(t *testing.T) {
	var seen []arrival
	var next atomic.Pointer[grpccompat.Client]
	client := connect(t, arrivals(&seen, &next), setting{}, true)
	next.Store(client)
	ctx := fulmar.WithTransient(fulmar.WithPersistent(t.Context(), "userId", "1"), "traceId", "2")
	if _, err := ask(ctx, client); err != nil || len(seen) != 2 {
		t.Fatalf("%v, %d calls", err, len(seen))
	}
	for i, got := range seen {
		if want := []string{"RPC_PERSIST_userId=1", "RPC_TRANSIT_traceId=2"}; !slices.Equal(got.pairs, want) {
			t.Errorf("call %d: %q, want %q", i+1, got.pairs, want)
		}
	}
}

// TestMetadata_Upstream: what peers would drop fails, with a reason.
func TestMetadata_Upstream(t *testing.T) {
	eachWay(t, &service{}, setting{}, func(t *testing.T, client *grpccompat.Client) {
		_, err := ask(metadata.AppendToOutgoingContext(t.Context(), "rpc-transit-upstream-a", "1"), client)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "UPSTREAM_") {
			t.Errorf("%v", err)
		}
	})
}

// TestMetadata_SpaceAround: values are sent without it, in both directions, but those that are bytes;
// what the caller has is as it was. Space alone is nothing.
func TestMetadata_SpaceAround(t *testing.T) {
	spaced := func() metadata.MD {
		return metadata.MD{"sp": {" x ", "y", "  a b"}, "Sp-Bin": {" x "}, "none": {"  "}, "rpc-persist-p": {" 1 ", "2 "}}
	}
	want := map[string][]string{"sp": {"x", "y", "a b"}, "sp-bin": {" x "}}
	keys := []string{"sp", "sp-bin", "none", "rpc-persist-p"}
	reply := metadata.MD{"sp": spaced()["sp"], "sp-bin": {" x "}, "none": {"  "}}
	var arrived metadata.MD
	s := &service{
		unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			arrived, _ = metadata.FromIncomingContext(ctx)
			return &testpb.SimpleResponse{}, grpc.SetHeader(ctx, reply)
		},
		output: func(_ *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
			stream.SetTrailer(reply)
			return stream.SendHeader(reply)
		},
	}
	eachWay(t, s, setting{}, func(t *testing.T, client *grpccompat.Client) {
		wantHere, wantUnary := maps.Clone(want), want
		if strings.HasSuffix(t.Name(), "local") {
			wantHere["sp"] = []string{"x,y,a b"}
			wantUnary = maps.Clone(wantHere)
		}
		wantHere["rpc-persist-p"] = []string{"1,2"}
		sent := spaced()
		var back [3]metadata.MD
		if _, err := ask(metadata.NewOutgoingContext(t.Context(), sent), client, grpc.Header(&back[0])); err != nil {
			t.Fatal(err)
		}
		if got := only(arrived, keys...); !sameMD(got, wantHere) || !sameMD(sent, spaced()) {
			t.Errorf("arrived: %q, want %q; the caller has %q", got, wantHere, sent)
		}
		stream, err := testpb.NewTestServiceClient(client).StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Error(err)
		}
		back[1], err = stream.Header()
		if back[2] = stream.Trailer(); err != nil {
			t.Error(err)
		}
		for i, wanted := range []map[string][]string{wantUnary, want, want} {
			if got := only(back[i], keys...); !sameMD(got, wanted) {
				t.Errorf("back, %d: %q, want %q", i, got, wanted)
			}
		}
	})
}

// TestMetadata_ThatNoHeaderCanHave: calls of the client fail, handlers of unary calls lose the key,
// and those of streams learn of it, but for trailers.
func TestMetadata_ThatNoHeaderCanHave(t *testing.T) {
	bad, good := metadata.Pairs("bad", "fine", "bad", "gr\u00fcn"), metadata.Pairs("good", "1")
	s := &service{
		unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return &testpb.SimpleResponse{}, errors.Join(grpc.SetHeader(ctx, metadata.Join(bad, good)), grpc.SetTrailer(ctx, metadata.Pairs("behind", "a\nb")))
		},
		output: func(request *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
			stream.SetTrailer(metadata.Join(bad, good))
			if err := stream.SetHeader(bad); err != nil {
				t.Error(err)
			}
			if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err == nil || !strings.Contains(err.Error(), "printable ASCII") {
				t.Errorf("a message behind such a header: %v", err)
			}
			return nil
		},
	}
	client := connect(t, s, setting{}, false)
	if _, err := ask(metadata.NewOutgoingContext(t.Context(), bad), client); status.Code(err) != codes.InvalidArgument {
		t.Errorf("the client: %v", err)
	}
	keys := []string{"bad", "good", "behind"}
	var header, trailer metadata.MD
	if _, err := ask(t.Context(), client, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		t.Error(err)
	}
	stream, err := testpb.NewTestServiceClient(client).StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Error(err)
	}
	want := map[string][]string{"good": {"1"}}
	if !sameMD(only(header, keys...), want) || !sameMD(only(trailer, keys...), nil) || !sameMD(only(stream.Trailer(), keys...), want) {
		t.Errorf("header %q, trailer %q, trailer of the stream %q", header, trailer, stream.Trailer())
	}
}
