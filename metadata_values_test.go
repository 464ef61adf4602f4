package fulmar_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// pairsOf returns the pairs of metadata, as "key=value" in their order.
func pairsOf(m fulmar.Metadata) []string {
	var list []string
	for key, value := range m.All() {
		list = append(list, key+"="+value)
	}
	return list
}

// TestMetadata_SeveralValues: gRPC carries each value of a key apart, in both directions, and
// says what comes behind the message; TTHeader carries one text with commas, and of bytes the
// last ones.
func TestMetadata_SeveralValues(t *testing.T) {
	fails := false
	stub := &testservice.Stub{OnNothing: func(context.Context) error { return nil }, OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
		call, _ := fulmar.CallFrom(ctx)
		one, _ := call.Metadata().Transient("tag")
		bytes, _ := call.Metadata().Transient("raw-bin")
		if one != "a,b" || bytes != "\x02" {
			t.Errorf("asked for one: %q and %q", one, bytes)
		}
		set := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		set(fulmar.SetReplyMetadata(ctx, "h", "0"))
		set(fulmar.SetReplyMetadata(ctx, "h", "1", "", "2"))
		set(fulmar.SetReplyMetadata(ctx, "gone", "1", "2"))
		set(fulmar.SetReplyMetadata(ctx, "gone"))
		set(fulmar.SetReplyTrailer(ctx, "t", "3", "4"))
		set(fulmar.SetReplyTrailer(ctx, "t-bin", "\x05", "\x06"))
		if fails {
			return nil, fulmar.NewError(fulmar.NotFound, strconv.Quote(seen(ctx)))
		}
		return &testservice.Message{Text: strconv.Quote(seen(ctx))}, nil
	}}
	apart := []string{`"transient tag=a, transient tag=b, transient raw-bin=\x01, transient raw-bin=\x02"`, `"transient tag=a,b, transient raw-bin=\x02"`}
	for _, test := range []struct {
		protocol        fulmar.Protocol
		fails           bool
		arrived         string
		header, trailer []string
	}{
		{fulmar.GRPC, false, apart[0], []string{"h=1", "h=2"}, []string{"t=3", "t=4", "t-bin=\x05", "t-bin=\x06"}},
		{fulmar.GRPC, true, apart[0], []string{"h=1", "h=2"}, []string{"t=3", "t=4", "t-bin=\x05", "t-bin=\x06"}},
		{fulmar.TTHeader, false, apart[1], []string{"h=1,2", "t=3,4", "t-bin=\x06"}, nil},
		{fulmar.TTHeader, true, apart[1], []string{"h=1,2", "t=3,4", "t-bin=\x06"}, nil},
	} {
		fails = test.fails
		simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: test.protocol}, stub, func(s *simulation) {
			ctx := fulmar.WithTransient(s.t.Context(), "tag", "before")
			ctx = fulmar.WithTransient(fulmar.WithTransient(ctx, "tag", "a", "b"), "raw-bin", "\x01", "\x02")
			header, trailer := fulmar.Metadata{}.With("left", "over"), fulmar.Metadata{}.With("left", "over")
			var all map[string]string
			got, err := s.api.Echo(ctx, &testservice.Message{}, fulmar.ReceiveReply(&header, &trailer), fulmar.ReceiveMetadata(&all))
			arrived := ""
			if got != nil {
				arrived = got.Text
			}
			if test.fails {
				arrived = messageOf(err)
			}
			if (err != nil) != test.fails || arrived != test.arrived {
				t.Errorf("%v: %v, the handler saw %q, want %q", test.protocol, err, arrived, test.arrived)
			}
			if !slices.Equal(pairsOf(header), test.header) || !slices.Equal(pairsOf(trailer), test.trailer) {
				t.Errorf("%v: header %q and trailer %q, want %q and %q", test.protocol, pairsOf(header), pairsOf(trailer), test.header, test.trailer)
			}
			if want := map[string]string{"h": "1,2", "t": "3,4", "t-bin": "\x06"}; !maps.Equal(all, want) {
				t.Errorf("%v: all in one %q, want %q", test.protocol, all, want)
			}
			// Nothing is left of it, and only one of the two may be wanted.
			if err := s.api.Nothing(s.t.Context(), fulmar.ReceiveReply(&header, nil)); err != nil || pairsOf(header) != nil {
				t.Errorf("%v: %v, header %q", test.protocol, err, pairsOf(header))
			}
		})
	}
}

// TestStreams_WithoutTypes: who knows messages only when it runs sends and receives them all
// the same, and has all values of a key.
func TestStreams_WithoutTypes(t *testing.T) {
	method := &fulmar.MethodDesc{
		Service: "Feed", Name: "swap", Codec: thrift.Binary, ClientStreams: true, ServerStreams: true,
		InvokeStream: func(_ any, stream *fulmar.ServerMessages) error {
			if err := stream.SendHeaderMetadata(fulmar.Metadata{}.With("fulmar-x", "1")); err == nil {
				t.Error("a reserved key was sent")
			}
			for first := true; ; first = false {
				item := new(testservice.Item)
				err := stream.Recv(item)
				if first && err == nil {
					err = stream.SendHeaderMetadata(fulmar.Metadata{}.With("h", "1", "2"))
				}
				if err == io.EOF {
					return fulmar.SetReplyMetadata(stream.Context(), "t", "3", "4")
				}
				if err != nil {
					return err
				}
				if err := stream.Send(item); err != nil {
					return err
				}
			}
		},
	}
	for _, way := range streamingWays {
		wantHeader, wantTrailer := []string{"h=1", "h=2"}, []string{"t=3", "t=4"}
		if strings.HasPrefix(way, "ttheader") {
			wantHeader, wantTrailer = []string{"h=1,2"}, []string{"t=3,4"}
		}
		synctest.Test(t, func(t *testing.T) {
			client := dialWithoutTypes(t, way, method)
			var optHeader, optTrailer fulmar.Metadata
			stream, err := client.OpenStream(t.Context(), method, fulmar.ReceiveReply(&optHeader, &optTrailer))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&testservice.Item{Name: "it", Count: 7}); err != nil {
				t.Error(err)
			}
			if err := stream.Send("no message"); fulmar.CodeOf(err) != fulmar.InvalidArgument {
				t.Errorf("%s: a text was sent: %v", way, err)
			}
			got := new(testservice.Item)
			if err := stream.Recv(got); err != nil || got.Name != "it" || got.Count != 7 {
				t.Errorf("%s: %v, %v", way, got, err)
			}
			if metadata, err := stream.HeaderMetadata(); err != nil || !slices.Equal(pairsOf(metadata), wantHeader) {
				t.Errorf("%s: header %q, %v", way, pairsOf(metadata), err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
			if err := stream.Recv(got); err != io.EOF {
				t.Error(err)
			}
			if metadata := stream.TrailerMetadata(); !slices.Equal(pairsOf(metadata), wantTrailer) {
				t.Errorf("%s: trailer %q", way, pairsOf(metadata))
			}
			if !slices.Equal(pairsOf(optHeader), wantHeader) || !slices.Equal(pairsOf(optTrailer), wantTrailer) {
				t.Errorf("%s: by the option: header %q, trailer %q", way, pairsOf(optHeader), pairsOf(optTrailer))
			}
			openAnother(t, client, method, &optHeader, &optTrailer)
		})
	}
}

// openAnother opens a stream that ends before anything came: it has no metadata, and none of
// the stream before.
func openAnother(t *testing.T, client *fulmar.Client, method *fulmar.MethodDesc, header, trailer *fulmar.Metadata) {
	t.Helper()
	stream, err := client.OpenStream(t.Context(), method, fulmar.ReceiveReply(header, trailer))
	if err != nil {
		t.Fatal(err)
	}
	stream.Cancel()
	if pairsOf(*header) != nil || pairsOf(*trailer) != nil {
		t.Errorf("left of the stream before: %q, %q", pairsOf(*header), pairsOf(*trailer))
	}
}

// dialWithoutTypes serves one method, and returns a client.
func dialWithoutTypes(t *testing.T, way string, method *fulmar.MethodDesc) *fulmar.Client {
	t.Helper()
	return newStreamingOf(t, way, func(server *fulmar.Server) {
		server.RegisterService(&fulmar.ServiceDesc{Name: method.Service, Methods: []*fulmar.MethodDesc{method}}, t)
	}, fulmar.ServerConfig{}, fulmar.ClientConfig{}).client
}

func messageOf(err error) string {
	if e, ok := err.(*fulmar.Error); ok {
		return e.Message()
	}
	return ""
}
