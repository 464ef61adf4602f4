package guide_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// revocations are the serial numbers of a revocation list (RFC 5280).
type revocations struct {
	serials atomic.Pointer[map[string]bool]
}

// load reads the list from a file; call it again when that has changed.
func (r *revocations) load(file string, signer *x509.Certificate) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return errors.New("the file holds no list")
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		return err
	}
	if err := list.CheckSignatureFrom(signer); err != nil {
		return err
	}
	serials := map[string]bool{}
	for _, entry := range list.RevokedCertificateEntries {
		serials[entry.SerialNumber.String()] = true
	}
	r.serials.Store(&serials)
	return nil
}

func (r *revocations) has(certificate *x509.Certificate) bool {
	return (*r.serials.Load())[certificate.SerialNumber.String()]
}

// verify is for tls.Config.VerifyConnection: it refuses new connections.
func (r *revocations) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) > 0 && r.has(state.PeerCertificates[0]) {
		return errors.New("the certificate was revoked")
	}
	return nil
}

// intercept refuses calls on connections that were open before.
func (r *revocations) intercept(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	served, _ := fulmar.CallFrom(ctx)
	if caller, known := served.Identity(); known && r.has(caller.Certificate()) {
		return fulmar.NewError(fulmar.PermissionDenied, "the certificate was revoked")
	}
	return next(ctx, call)
}

func TestTLS_Revocations(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(serial int64) *x509.Certificate {
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCRLSign, SubjectKeyId: []byte{1}}
		encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	signer, good, bad := certificate(1), certificate(2), certificate(3)
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: bad.SerialNumber, RevocationTime: time.Now()}},
	}, signer, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "revoked.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: list}), 0o600); err != nil {
		t.Fatal(err)
	}
	var r revocations
	if err := r.load(file, signer); err != nil {
		t.Fatal(err)
	}
	if err := r.verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{good}}); err != nil {
		t.Error(err)
	}
	if err := r.verify(tls.ConnectionState{PeerCertificates: []*x509.Certificate{bad}}); err == nil {
		t.Error("a revoked certificate is taken")
	}
	passed := false
	if err := r.intercept(t.Context(), fulmar.Unary{}, func(context.Context, fulmar.Unary) error { passed = true; return nil }); err != nil || !passed {
		t.Errorf("a call without a certificate: %v", err)
	}
}
