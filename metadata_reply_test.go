package fulmar_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestMetadata_TrailersThatAreTooLarge: in gRPC a caller learns that metadata of a reply is
// missing, whether it was to come in front of the message or behind it.
func TestMetadata_TrailersThatAreTooLarge(t *testing.T) {
	long := strings.Repeat("v", limits.HTTP2HeaderListBytes)
	for name, set := range map[string]func(ctx context.Context) error{
		"in front": func(ctx context.Context) error { return fulmar.SetReplyMetadata(ctx, "k", long) },
		"behind":   func(ctx context.Context) error { return fulmar.SetReplyTrailer(ctx, "k", long) },
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
				OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
					if message.Text == "long" {
						return message, set(ctx)
					}
					return message, nil
				},
			})
			api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.GRPC})
			_, err := api.Echo(t.Context(), &testservice.Message{Text: "long"})
			if e := asError(t, err); e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedYes || !strings.Contains(e.Message(), "headers are too large") {
				t.Errorf("got %v (%v, executed %v)", e, e.Code(), e.Executed())
			}
			if _, err := api.Echo(t.Context(), &testservice.Message{Text: "short"}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// unsendable are pairs of a reply that no header can have, and why.
func unsendable() map[[2]string]string {
	const key, value, reserved = "the key cannot be sent in gRPC", "the value cannot be sent in gRPC", "a meaning in gRPC of its own"
	return map[[2]string]string{
		{"note", "gr\u00fcn"}: value,
		{"note", "a\nb"}:      value,
		{"note", " a"}:        value,
		{"note", "a "}:        value,
		{"a note", "a"}:       key,
		{"n\u00f6te", "a"}:    key,
		{"grpc-status", "0"}:  reserved,
		{"Content-Type", "a"}: reserved,
	}
}

// TestMetadata_RepliesThatNoHeaderCanHave: a handler learns that they cannot be sent in gRPC.
// Other protocols have no such rule.
func TestMetadata_RepliesThatNoHeaderCanHave(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		call, _ := fulmar.CallFrom(ctx)
		for name, set := range map[string]func(context.Context, string, ...string) error{"in front": fulmar.SetReplyMetadata, "behind": fulmar.SetReplyTrailer} {
			for pair, want := range unsendable() {
				err := set(ctx, pair[0], "", pair[1])
				if refused := call.Protocol() == fulmar.GRPC; refused != (err != nil) || refused && !strings.Contains(err.Error(), want) {
					t.Errorf("%v, %s, %q: %v, want %q", call.Protocol(), name, pair, err, want)
				}
			}
			if err := set(ctx, "note-bin", " \xff\n"); err != nil {
				t.Errorf("%v, %s, bytes: %v", call.Protocol(), name, err)
			}
		}
		return nil
	}})
	for _, protocol := range []fulmar.Protocol{fulmar.GRPC, fulmar.TTHeader} {
		var back map[string]string
		err := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol}).Nothing(t.Context(), fulmar.ReceiveMetadata(&back))
		if err != nil || back["note-bin"] != " \xff\n" || back["note"] != "" && protocol == fulmar.GRPC {
			t.Errorf("%v: the reply has %q, %v", protocol, back, err)
		}
	}
}

// TestMetadata_HeadersOfStreamsThatNoHeaderCanHave is the same for what a stream sends in front of
// its messages: nothing is sent then.
func TestMetadata_HeadersOfStreamsThatNoHeaderCanHave(t *testing.T) {
	service := &feed{list: func(_ *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
		for pair, want := range unsendable() {
			err := stream.SendHeader(map[string]string{pair[0]: pair[1], "other": "a"})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", pair, err, want)
			}
		}
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		s := newStreaming(t, "grpc", service, fulmar.ServerConfig{}, fulmar.ClientConfig{})
		list, err := s.api.List(t.Context(), &testservice.Item{})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range list.All() {
			t.Error(err)
		}
	})
}

// TestMetadata_ProxiesSayWhatTheyLeaveOut: what another server has sent, in a protocol that can, is
// left out where no header can have it, and the log says so.
func TestMetadata_ProxiesSayWhatTheyLeaveOut(t *testing.T) {
	back := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
		return errors.Join(fulmar.SetReplyMetadata(ctx, "NOTE", "gr\u00fcn"), fulmar.SetReplyMetadata(ctx, "OTHER", "a"))
	}})
	front := unknown(t, fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address})))
	var got map[string]string
	err := dial(t, fulmar.ClientConfig{Target: front.address, Protocol: fulmar.GRPC}).Nothing(t.Context(), fulmar.ReceiveMetadata(&got))
	if err != nil || len(got) != 1 || got["other"] != "a" {
		t.Errorf("the reply has %q, %v", got, err)
	}
	if log := front.log.String(); strings.Count(log, "reply metadata left out") != 1 || !strings.Contains(log, "note") || !strings.Contains(log, "printable ASCII") || strings.Contains(log, "gr\u00fcn") {
		t.Errorf("the log of the proxy: %s", log)
	}
}

// TestMetadata_OfFailedCalls: in gRPC what a handler has set is the header of its call also when that
// fails, but for when to try again, which goes with the status. What is too large for a header
// takes nothing of the status away.
func TestMetadata_OfFailedCalls(t *testing.T) {
	const pushBack = "grpc-retry-pushback-ms"
	long := strings.Repeat("v", limits.HTTP2HeaderListBytes)
	for name, test := range map[string]struct {
		set             map[string]string
		behind          string
		err             error
		header, trailer []string
	}{
		"header":               {map[string]string{"request-id": "42"}, "", nil, []string{"request-id=42"}, nil},
		"header and trailer":   {map[string]string{"request-id": "42"}, "1", nil, []string{"request-id=42"}, []string{"t=1"}},
		"trailer":              {nil, "1", nil, nil, []string{"t=1"}},
		"when to try again":    {map[string]string{pushBack: "-1"}, "", nil, nil, []string{pushBack + "=-1"}},
		"both":                 {map[string]string{"request-id": "42", pushBack: "-1"}, "", nil, []string{"request-id=42"}, []string{pushBack + "=-1"}},
		"too large":            {map[string]string{"request-id": "42", "long": long}, "1", nil, nil, []string{"t=1"}},
		"too large a trailer":  {map[string]string{"request-id": "42"}, long, nil, []string{"request-id=42"}, nil},
		"of a business error":  {map[string]string{"request-id": "42"}, "1", fulmar.NewBusinessError(7, "no", nil), []string{"request-id=42"}, []string{"t=1"}},
		"nothing was set here": {nil, "", nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			failed := cmp.Or(test.err, error(fulmar.NewError(fulmar.NotFound, "no")))
			server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(ctx context.Context) error {
				for key, value := range test.set {
					if err := fulmar.SetReplyMetadata(ctx, key, value); err != nil {
						t.Error(err)
					}
				}
				return errors.Join(failed, fulmar.SetReplyTrailer(ctx, "t", test.behind))
			}})
			api := dial(t, fulmar.ClientConfig{Target: server.address, Protocol: fulmar.GRPC})
			var header, trailer fulmar.Metadata
			err := api.Nothing(t.Context(), fulmar.ReceiveReply(&header, &trailer))
			business := new(fulmar.BusinessError)
			if test.err != nil != errors.As(err, &business) || test.err == nil && fulmar.CodeOf(err) != fulmar.NotFound {
				t.Errorf("the call failed with %v", err)
			}
			if !slices.Equal(pairsOf(header), test.header) || !slices.Equal(pairsOf(trailer), test.trailer) {
				t.Errorf("header %q and trailer %q, want %q and %q", pairsOf(header), pairsOf(trailer), test.header, test.trailer)
			}
		})
	}
}
