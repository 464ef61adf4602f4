package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// finding is what sslyze says of one thing.
type finding struct {
	Status string         `json:"status"`
	Result map[string]any `json:"result"`
}

// scanned has sslyze scan a server with TLS, and looks for what should be there and for what
// should not.
func scanned(ctx context.Context, program string, out io.Writer) error {
	folder, err := os.MkdirTemp("", "sslyze")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	files, err := newIdentity(folder)
	if err != nil {
		return err
	}
	server, err := newBehind(files, make(chan error, 1))
	if err != nil {
		return err
	}
	defer server.stop()
	report := filepath.Join(folder, "report.json")
	// Its end says nothing: it compares with a profile of its own.
	said, err := exec.CommandContext(ctx, program, append(scans(), "--json_out="+report, server.address)...).CombinedOutput()
	content, reading := os.ReadFile(report)
	if reading != nil {
		return fmt.Errorf("sslyze: %w, %w\n%s", err, reading, said)
	}
	var all struct {
		Servers []struct {
			Status   string             `json:"scan_status"`
			Findings map[string]finding `json:"scan_result"`
		} `json:"server_scan_results"`
	}
	if err := json.Unmarshal(content, &all); err != nil {
		return fmt.Errorf("sslyze: %w", err)
	}
	if len(all.Servers) != 1 || all.Servers[0].Status != "COMPLETED" {
		return fmt.Errorf("sslyze: the scan was not completed:\n%s", said)
	}
	return checkScan(all.Servers[0].Findings, out)
}

// scans are the flags for what is to be looked at.
func scans() []string {
	return []string{
		"--sslv2", "--sslv3", "--tlsv1", "--tlsv1_1", "--tlsv1_2", "--tlsv1_3", "--compression", "--early_data",
		"--openssl_ccs", "--fallback", "--heartbleed", "--robot", "--reneg", "--ems",
	}
}

// wantedFindings are what sslyze should say, by its names.
func wantedFindings() map[string]map[string]any {
	return map[string]map[string]any{
		"ssl_2_0_cipher_suites":      {"is_tls_version_supported": false},
		"ssl_3_0_cipher_suites":      {"is_tls_version_supported": false},
		"tls_1_0_cipher_suites":      {"is_tls_version_supported": false},
		"tls_1_1_cipher_suites":      {"is_tls_version_supported": false},
		"tls_1_2_cipher_suites":      {"is_tls_version_supported": true},
		"tls_1_3_cipher_suites":      {"is_tls_version_supported": true},
		"tls_compression":            {"supports_compression": false},
		"tls_1_3_early_data":         {"supports_early_data": false},
		"openssl_ccs_injection":      {"is_vulnerable_to_ccs_injection": false},
		"tls_fallback_scsv":          {"supports_fallback_scsv": true},
		"heartbleed":                 {"is_vulnerable_to_heartbleed": false},
		"robot":                      {"robot_result": "NOT_VULNERABLE_RSA_NOT_SUPPORTED"},
		"session_renegotiation":      {"supports_secure_renegotiation": true, "is_vulnerable_to_client_renegotiation_dos": false},
		"tls_extended_master_secret": {"supports_ems_extension": true},
	}
}

// checkScan compares findings with what they should be.
func checkScan(findings map[string]finding, out io.Writer) error {
	var problems []error
	looked := 0
	for name, want := range wantedFindings() {
		found, there := findings[name]
		if !there || found.Status != "COMPLETED" {
			problems = append(problems, fmt.Errorf("sslyze: %s: %q", name, found.Status))
			continue
		}
		for key, value := range want {
			if looked++; found.Result[key] != value {
				problems = append(problems, fmt.Errorf("sslyze: %s: %s is %v, want %v", name, key, found.Result[key], value))
			}
		}
	}
	accepted := suites(findings["tls_1_2_cipher_suites"])
	if len(accepted) == 0 {
		problems = append(problems, errors.New("sslyze: no cipher suite of TLS 1.2 is accepted"))
	}
	for _, suite := range accepted {
		// Keys that do not tell what was said before, and a cipher that notices changes.
		if !strings.HasPrefix(suite, "TLS_ECDHE_") || !strings.Contains(suite, "_GCM_") && !strings.Contains(suite, "_POLY1305_") {
			problems = append(problems, fmt.Errorf("sslyze: the cipher suite %s is accepted", suite))
		}
	}
	fmt.Fprintf(out, "sslyze: %d findings looked at; suites of TLS 1.2: %s\n", looked, strings.Join(accepted, ", "))
	return errors.Join(problems...)
}

// suites returns the names of the cipher suites that are accepted, sorted.
func suites(found finding) (names []string) {
	accepted, _ := found.Result["accepted_cipher_suites"].([]any)
	for _, each := range accepted {
		suite, _ := each.(map[string]any)["cipher_suite"].(map[string]any)
		names = append(names, fmt.Sprint(suite["name"]))
	}
	slices.Sort(names)
	return names
}
