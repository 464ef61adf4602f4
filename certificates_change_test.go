package fulmar_test

import (
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// loaded loads files that are looked at each time, and returns what there is now: the
// serial number of the certificate.
func loaded(t *testing.T, files fulmar.CertificateFiles, log *logRecorder) (*fulmar.Certificates, func() string) {
	t.Helper()
	files.CheckInterval = time.Nanosecond
	certificates, err := fulmar.LoadCertificates(files, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return certificates, func() string {
		t.Helper()
		certificate, err := certificates.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(certificate.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return parsed.SerialNumber.String()
	}
}

// TestCertificates_AnyChangeCounts: also one that leaves times and sizes as they were.
func TestCertificates_AnyChangeCounts(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	first, second := a.issue("server", nil), a.issue("server", nil)
	for len(second.Certificate[0]) != len(first.Certificate[0]) {
		second = a.issue("server", nil) // signatures differ in length
	}
	files := a.files("server")
	a.write(files, first)
	at := time.Now().Add(-time.Hour)
	age := func() {
		t.Helper()
		for _, name := range []string{files.Certificate, files.Key, files.Authorities} {
			if err := os.Chtimes(name, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	age()
	certificates, serial := loaded(t, files, &logRecorder{})
	before := serial()
	a.write(files, second)
	age()
	if serial() == before {
		t.Error("a certificate with the time and size of the old one was not seen")
	}
	authorities := certificates.Authorities()
	writePEM(t, files.Authorities, "CERTIFICATE", other.certificate.Raw)
	age()
	if certificates.Authorities().Equal(authorities) {
		t.Error("other authorities were not seen")
	}
}

// TestCertificates_BehindALink: Kubernetes has the files in a folder, and lets a link
// lead to another one when they change.
func TestCertificates_BehindALink(t *testing.T) {
	a := newAuthority(t)
	folder := t.TempDir()
	put := func(name string) {
		t.Helper()
		if err := os.MkdirAll(a.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		files := a.files("server")
		if err := os.Rename(filepath.Dir(files.Certificate), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(folder, "next")
		if err := os.Symlink(name, next); err != nil {
			t.Skip(err)
		}
		if err := os.Rename(next, filepath.Join(folder, "data")); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	inside := func(name string) string { return filepath.Join(folder, "data", name) }
	files := fulmar.CertificateFiles{Certificate: inside("server.pem"), Key: inside("server.key"), Authorities: inside("authorities.pem")}
	_, serial := loaded(t, files, &logRecorder{})
	before := serial()
	put("new")
	if serial() == before {
		t.Error("the certificate is that of before the link changed")
	}
}

// TestCertificates_HalfWritten: a file that is being written leaves everything as it is,
// and the log says so once.
func TestCertificates_HalfWritten(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	files := a.files("server")
	log := &logRecorder{}
	certificates, serial := loaded(t, files, log)
	before, authorities := serial(), certificates.Authorities()
	both := func(name string) []byte {
		t.Helper()
		old, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		writePEM(t, name, "CERTIFICATE", other.certificate.Raw)
		fresh, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return append(fresh, old...)
	}
	text := both(files.Authorities)
	if err := os.WriteFile(files.Authorities, text[:len(text)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if serial() != before || !certificates.Authorities().Equal(authorities) {
			t.Fatal("half of a file is used")
		}
	}
	if got := strings.Count(log.String(), "the old ones stay"); got != 1 {
		t.Errorf("%d lines about one file:\n%s", got, log.String())
	}
	if err := os.WriteFile(files.Authorities, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if certificates.Authorities().Equal(authorities) {
		t.Error("the whole file is not used")
	}
}
