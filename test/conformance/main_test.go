package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// TestConnect_CasesPass: but those of which it is known why they do not.
func TestConnect_CasesPass(t *testing.T) {
	var out bytes.Buffer
	if err := connect(t.Context(), untimedConnectModes(), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestMain(m *testing.M) { testkit.Main(m) }

func TestH2spec_AllCasesPass(t *testing.T) {
	var out bytes.Buffer
	err := serving(t.Context(), fulmar.ServerTLS{}, func(ctx context.Context, address string) error { return h2spec(ctx, address, &out) })
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestH2spec_AllCasesPassOverTLS(t *testing.T) {
	var out bytes.Buffer
	if err := h2specTLS(t.Context(), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// program returns the path of one that make conformance fetches, or the system has.
func program(t *testing.T, name string, fetched ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", ".cache"}, fetched...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if path, err = exec.LookPath(name); err != nil {
		t.Skipf("%v; make conformance fetches it", err)
	}
	return path
}

func TestNginx_InBetween(t *testing.T) {
	var out bytes.Buffer
	if err := behindNginx(t.Context(), program(t, "nginx", "nginx", "usr", "sbin", "nginx"), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "800 calls, none failed") || !strings.Contains(out.String(), "the proxy was killed") {
		t.Errorf("not all was tried:\n%s", out.String())
	}
}

func TestSslyze_FindsNothing(t *testing.T) {
	var out bytes.Buffer
	if err := scanned(t.Context(), program(t, "sslyze", "sslyze", "bin", "sslyze"), &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestCheckScan_Complains about what is missing or bad.
func TestCheckScan_Complains(t *testing.T) {
	suite := func(name string) map[string]any {
		return map[string]any{"is_tls_version_supported": true, "accepted_cipher_suites": []any{
			map[string]any{"cipher_suite": map[string]any{"name": name}},
		}}
	}
	good := map[string]finding{}
	for name, result := range wantedFindings() {
		good[name] = finding{"COMPLETED", result}
	}
	good["tls_1_2_cipher_suites"] = finding{"COMPLETED", suite("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")}
	if err := checkScan(good, io.Discard); err != nil {
		t.Error(err)
	}
	for want, bad := range map[string]struct {
		name string
		finding
	}{
		`heartbleed: "ERROR"`:                          {"heartbleed", finding{"ERROR", nil}},
		"is_tls_version_supported is true, want false": {"tls_1_0_cipher_suites", finding{"COMPLETED", map[string]any{"is_tls_version_supported": true}}},
		"no cipher suite of TLS 1.2":                   {"tls_1_2_cipher_suites", finding{"COMPLETED", map[string]any{"is_tls_version_supported": true}}},
		"TLS_RSA_WITH_AES_128_GCM_SHA256 is accepted":  {"tls_1_2_cipher_suites", finding{"COMPLETED", suite("TLS_RSA_WITH_AES_128_GCM_SHA256")}},
	} {
		findings := maps.Clone(good)
		findings[bad.name] = bad.finding
		if err := checkScan(findings, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
