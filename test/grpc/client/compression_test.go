package client_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
	"github.com/fulmar-rpc/fulmar/protobuf"
)

// arrivals is what a server of grpc-go has seen of requests since the last take.
type arrivals struct {
	mu       sync.Mutex
	encoding string
	// long is how long messages are, wire how long they were when they arrived.
	long, wire []int
}

func (a *arrivals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (a *arrivals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (a *arrivals) HandleConn(context.Context, stats.ConnStats) {}

func (a *arrivals) HandleRPC(_ context.Context, event stats.RPCStats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch event := event.(type) {
	case *stats.InHeader:
		a.encoding = event.Compression
	case *stats.InPayload:
		a.long, a.wire = append(a.long, event.Length), append(a.wire, event.CompressedLength)
	}
}

func (a *arrivals) take() (encoding string, long, wire []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	encoding, long, wire = a.encoding, a.long, a.wire
	a.encoding, a.long, a.wire = "", nil, nil
	return encoding, long, wire
}

func TestClient_CompressesRequests(t *testing.T) {
	var seen arrivals
	_, address := serve(t, &pantry{}, grpc.StatsHandler(&seen))
	_, plain := dial(t, fulmar.ClientConfig{Target: address})
	_, packing := dial(t, fulmar.ClientConfig{Target: address, Compression: "gzip"})
	noise := make([]byte, 9000)
	_, _ = rand.Read(noise)
	half := make([]byte, 150_000)
	_, _ = rand.Read(half)
	// In hexadecimal it has twice the length, and half of that is more than a window.
	long := &protoservice.Jar{Name: hex.EncodeToString(half)}
	random := &protoservice.Jar{Name: "noise", Content: &protoservice.Jar_Data{Data: noise}}
	gzip, identity := fulmar.Compression("gzip"), fulmar.Compression("identity")
	for name, c := range map[string]struct {
		api     protoservice.PantryClient
		jar     *protoservice.Jar
		options []fulmar.CallOption
		header  string
		shorter bool
	}{
		"nobody asked":             {plain, jar(9000), nil, "", false},
		"an option":                {plain, jar(9000), []fulmar.CallOption{gzip}, "gzip", true},
		"the configuration":        {packing, jar(9000), nil, "gzip", true},
		"longer than a window":     {packing, long, nil, "gzip", true},
		"an option against it":     {packing, jar(9000), []fulmar.CallOption{identity}, "", false},
		"the last option":          {packing, jar(9000), []fulmar.CallOption{identity, gzip}, "gzip", true},
		"too short":                {packing, jar(10), nil, "gzip", false},
		"what becomes no shorter":  {packing, random, nil, "gzip", false},
		"an option beside another": {plain, jar(9000), []fulmar.CallOption{gzip, fulmar.Timeout(-1)}, "gzip", true},
	} {
		got, err := c.api.Put(t.Context(), c.jar, c.options...)
		if err != nil || !proto.Equal(got, c.jar) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		header, long, wire := seen.take()
		if header != c.header || len(long) != 1 || long[0] != proto.Size(c.jar) {
			t.Errorf("%s: encoding %q, messages of %d bytes", name, header, long)
		} else if shorter := wire[0] < long[0]*7/10; shorter != c.shorter || !shorter && wire[0] != long[0] {
			t.Errorf("%s: %d bytes of %d were sent", name, wire[0], long[0])
		}
	}
}

func TestClient_CompressesMessagesOfStreams(t *testing.T) {
	var seen arrivals
	server := grpc.NewServer(grpc.StatsHandler(&seen))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: "Echo", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				message := new(wrapperspb.StringValue)
				if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := stream.SendMsg(message); err != nil {
					return err
				}
			}
		},
	}}}, new(any))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	client, _ := dial(t, fulmar.ClientConfig{Target: listener.Addr().String(), Compression: "gzip"})
	echo := &fulmar.MethodDesc{Service: "test.Echo", Name: "Echo", Codec: protobuf.Binary, ClientStreams: true, ServerStreams: true}
	for _, packs := range []bool{true, false} {
		var options []fulmar.CallOption
		if !packs {
			options = append(options, fulmar.Compression("identity"))
		}
		stream, err := fulmar.OpenBidiStream[wrapperspb.StringValue, wrapperspb.StringValue](t.Context(), client, echo, options...)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 9000, 70_000} {
			want := strings.Repeat("x", n)
			if err := stream.Send(wrapperspb.String(want)); err != nil {
				t.Fatal(err)
			}
			if got, err := stream.Recv(); err != nil || got.GetValue() != want {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); err != io.EOF {
			t.Errorf("the end: %v", err)
		}
		_, long, wire := seen.take()
		if len(wire) != 3 || wire[0] != long[0] || (wire[1] < long[1]/10) != packs || (wire[2] < long[2]/10) != packs {
			t.Errorf("compression %v: %d bytes of %d were sent", packs, wire, long)
		}
	}
}

// TestClient_CompressionToOurServer: the limit of a server is that of what comes out.
func TestClient_CompressionToOurServer(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0", MaxMessageBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	server.RegisterService(&fulmar.ServiceDesc{Name: "fulmar.test.v1.Pantry", Methods: []*fulmar.MethodDesc{{
		Service: "fulmar.test.v1.Pantry", Name: "Put", Codec: protobuf.Binary, NewRequest: func() any { return new(protoservice.Jar) },
		Invoke: func(_ context.Context, _, request any) (any, error) { return request, nil },
	}}}, new(any))
	listening, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	_, api := dial(t, fulmar.ClientConfig{Target: listening.String(), Compression: "gzip"})
	for n, want := range map[int]fulmar.Code{90_000: 0, 200_000: fulmar.ResourceExhausted, 1000: 0} {
		if got, err := api.Put(t.Context(), jar(n)); fulmar.CodeOf(err) != want || err == nil && !proto.Equal(got, jar(n)) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
}

func TestClient_CompressionThatCannotBe(t *testing.T) {
	_, address := serve(t, &pantry{})
	_, api := dial(t, fulmar.ClientConfig{Target: address})
	failed := new(fulmar.Error)
	if _, err := api.Put(t.Context(), jar(1), fulmar.Compression("zstd")); !errors.As(err, &failed) ||
		failed.Code() != fulmar.InvalidArgument || failed.Executed() != fulmar.ExecutedNo || !strings.Contains(err.Error(), "zstd") {
		t.Errorf("an encoding that is not known: %v", err)
	}
	other, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Protocol: fulmar.Framed})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := protoservice.NewPantryClient(other).Put(t.Context(), jar(1), fulmar.Compression("gzip")); !errors.As(err, &failed) ||
		failed.Code() != fulmar.InvalidArgument || failed.Executed() != fulmar.ExecutedNo {
		t.Errorf("another protocol: %v", err)
	}
	for compression, protocol := range map[string]fulmar.Protocol{"zstd": fulmar.GRPC, "gzip": fulmar.TTHeader} {
		config := fulmar.ClientConfig{Target: address, Protocol: protocol, Compression: compression}
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "Compression") {
			t.Errorf("%s with %v: %v", compression, protocol, err)
		}
	}
}
