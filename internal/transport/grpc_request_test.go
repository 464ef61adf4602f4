package transport

import (
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

func TestGRPCRequest_Metadata(t *testing.T) {
	for _, c := range []struct{ prefix, key, value, name, sent string }{
		{wire.PersistentPrefix, "USER_ID", "7", "rpc-persist-user-id", "7"},
		{wire.PersistentPrefix, "trace", "7", "rpc-persist-trace", "7"},
		{wire.TransientPrefix, "USER_ID", "7", "rpc-transit-user-id", "7"},
		{wire.TransientPrefix, "x-request-id", "a b", "x-request-id", "a b"},
		{wire.TransientPrefix, "trace-bin", "\x00\xff", "trace-bin", "AP8"},
		{wire.TransientPrefix, "grpc-timeout", "1S", "", ""},
		{wire.TransientPrefix, "rpc-persist-a", "1", "", ""},
		{wire.TransientPrefix, ":path", "/", "", ""},
		{wire.TransientPrefix, "UPSTREAM_A", "1", "", ""},
		{wire.TransientPrefix, "upstream-A", "1", "", ""},
		{wire.TransientPrefix, "upstream-a", "1", "upstream-a", "1"},
		{wire.TransientPrefix, "a", "\r\nb: c", "", ""},
		{wire.TransientPrefix, "a", " b", "", ""},
		{wire.PersistentPrefix, "A", "\x7f", "", ""},
		{wire.PersistentPrefix, "Ä", "1", "", ""},
	} {
		field, err := metadataField(&Pair{Prefix: c.prefix, Key: c.key, Value: c.value})
		if (err != nil) != (c.name == "") || field.Name != c.name || field.Value != c.sent {
			t.Errorf("%s%s: %q: got %q: %q, %v", c.prefix, c.key, c.value, field.Name, field.Value, err)
		}
	}
}

func TestGRPCRequest_Refused(t *testing.T) {
	peer := scripted(t, PoolConfig{}, nil)
	for name, method := range map[string]Method{"oneway": {Name: "m", Oneway: true}, "no service": {Name: "m"}} {
		head := RequestHead{}
		if name == "oneway" {
			head.Service = "s"
		}
		if _, err := peer.NewRequest(method, head); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzGRPCReply: any bytes as the DATA of a reply, however they are cut, are one message or
// an error, the same as in one piece, and take memory as they arrive.
func FuzzGRPCReply(f *testing.F) {
	f.Add(framedMessage("hello"), 3)
	f.Add([]byte{1, 0, 0, 0x10, 0}, 1)
	f.Add(append(framedMessage(""), framedMessage("a")...), 5)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		const limit = 1 << 20
		pool := linkbuf.NewPool()
		run := func(pieces ...[]byte) (body []byte, whole bool, failed error) {
			request, reply := new(Request), new(grpcReply)
			defer reply.reset()
			given := 0
			for _, piece := range pieces {
				if err := reply.data(piece, request, limit, pool); err != nil {
					return nil, false, err
				}
				if given += len(piece); len(reply.body) > given || cap(reply.body) > max(2*given, 64<<10) {
					t.Fatalf("%d bytes took %d", given, cap(reply.body))
				}
			}
			return slices.Clone(reply.body), reply.whole, nil
		}
		at := min(max(cut, 0), len(b))
		body, whole, err := run(b)
		again, wholeAgain, errAgain := run(b[:at], b[at:])
		if string(body) != string(again) || whole != wholeAgain || (err == nil) != (errAgain == nil) {
			t.Errorf("in one piece %q, %v, %v; cut at %d %q, %v, %v", body, whole, err, at, again, wholeAgain, errAgain)
		}
		payload, _, used, _, nextErr := grpc.Next(b, limit)
		if used == len(b) && used > 0 && (!whole || string(body) != string(payload)) || nextErr != nil && err == nil {
			t.Errorf("got %q, %v, %v; it is %q, %v", body, whole, err, payload, nextErr)
		}
	})
}

// TestGRPCReply_Pairs: a key may have several values, and those of bytes are decoded.
func TestGRPCReply_Pairs(t *testing.T) {
	reply := new(grpcReply)
	for _, field := range []http2.Field{
		{Name: "a", Value: "1"}, {Name: "b-bin", Value: "AQ"}, {Name: "a", Value: "2"}, {Name: "b-bin", Value: "Ag==,AwQ,!"},
		{Name: "c-bin", Value: "!"}, {Name: "grpc-message", Value: "%C3%BC"}, {Name: "grpc-status", Value: "9"}, {Name: "date", Value: "now"},
	} {
		if err := reply.field(&field); err != nil {
			t.Error(err)
		}
	}
	if want := []Pair{{Key: "a", Value: "1"}, {Key: "b-bin", Value: "\x01"}, {Key: "a", Value: "2"}, {Key: "b-bin", Value: "\x02"}, {Key: "b-bin", Value: "\x03\x04"}}; !slices.Equal(reply.pairs, want) {
		t.Errorf("got %q, want %q", reply.pairs, want)
	}
	if reply.status.code != 9 || reply.status.message != "ü" {
		t.Errorf("status %+v", reply.status)
	}
}
