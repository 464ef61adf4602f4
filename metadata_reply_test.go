package fulmar_test

import (
	"context"
	"strings"
	"testing"

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
