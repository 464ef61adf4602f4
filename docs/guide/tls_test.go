package guide_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

func TestTLS_Server(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{
		TLS: fulmar.ServerTLS{Files: fulmar.CertificateFiles{
			Certificate: "server.pem",
			Key:         "server.key",
			Authorities: "clients.pem", // clients need a certificate (mTLS)
		}},
	})
	if server != nil || err == nil || !strings.Contains(err.Error(), "server.pem") || !strings.Contains(err.Error(), "clients.pem") {
		t.Errorf("files that are not there: %v", err)
	}
}

func TestTLS_Client(t *testing.T) {
	client, err := fulmar.NewClient(fulmar.ClientConfig{
		Target: "orders.internal:8888", // also the name in the server's certificate
		TLS: fulmar.ClientTLS{Files: fulmar.CertificateFiles{
			Certificate: "billing.pem",
			Key:         "billing.key",
			Authorities: "servers.pem",
		}},
	})
	if client != nil || err == nil || !strings.Contains(err.Error(), "billing.pem") || !strings.Contains(err.Error(), "servers.pem") {
		t.Errorf("files that are not there: %v", err)
	}
}

// onlyBilling refuses everybody else.
func onlyBilling(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	served, _ := fulmar.CallFrom(ctx)
	caller, known := served.Identity()
	if !known || !slices.Contains(caller.URIs(), "spiffe://example.org/billing") {
		return fulmar.NewError(fulmar.PermissionDenied, "this is for billing")
	}
	return next(ctx, call)
}

func TestTLS_OnlyBilling(t *testing.T) {
	err := onlyBilling(t.Context(), fulmar.Unary{}, nil)
	if fulmar.CodeOf(err) != fulmar.PermissionDenied {
		t.Error(err)
	}
}
