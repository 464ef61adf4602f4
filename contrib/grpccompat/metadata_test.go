package grpccompat_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
