//go:build unix

package fulmar_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// TestCertificates_SlowFilesHoldUpOneHandshake: who reads them waits, others take what
// there was. That they were read is no warning.
func TestCertificates_SlowFilesHoldUpOneHandshake(t *testing.T) {
	a := newAuthority(t)
	files := a.files("server")
	files.CheckInterval = time.Nanosecond
	log := &logRecorder{}
	certificates, err := fulmar.LoadCertificates(files, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	before := certificates.Authorities()
	writePEM(t, files.Authorities, "CERTIFICATE", newAuthority(t).certificate.Raw)
	text, err := os.ReadFile(files.Authorities)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files.Authorities); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(files.Authorities, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan bool)
	go func() { read <- certificates.Authorities() != before }()
	pipe, err := os.OpenFile(files.Authorities, os.O_WRONLY, 0) // until it is being read
	if err != nil {
		t.Fatal(err)
	}
	if certificates.Authorities() != before {
		t.Error("other authorities although nobody could read them")
	}
	if _, err := pipe.Write(text); err != nil {
		t.Error(err)
	}
	pipe.Close()
	if !<-read {
		t.Error("who has read the files got the old authorities")
	}
	if text := log.String(); !strings.Contains(text, "level=INFO msg=\"certificates were read again\"") {
		t.Errorf("log: %s", text)
	}
}

// TestCertificates_ReplacedWhileTheyAreRead: a certificate of before and a key of after
// never meet, if they are in one file, or in two that one link leads to.
func TestCertificates_ReplacedWhileTheyAreRead(t *testing.T) {
	a := newAuthority(t)
	if err := os.MkdirAll(a.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"one", "two"} {
		a.issue("server", nil)
		files := a.files("server")
		both := filepath.Join(filepath.Dir(files.Certificate), "both.pem")
		var text []byte
		for _, part := range []string{files.Certificate, files.Key} {
			some, err := os.ReadFile(part)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, some...)
		}
		if err := os.WriteFile(both, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Dir(files.Certificate))); err != nil {
			t.Fatal(err)
		}
	}
	swap := func(to string) error {
		next := filepath.Join(folder, "next")
		return errors.Join(os.Symlink(to, next), os.Rename(next, filepath.Join(folder, "data")))
	}
	if err := swap("one"); err != nil {
		t.Fatal(err)
	}
	inside := func(name string) string { return filepath.Join(folder, "data", name) }
	for name, files := range map[string]fulmar.CertificateFiles{
		"one file":  {Certificate: inside("both.pem"), Key: inside("both.pem"), Authorities: inside("authorities.pem")},
		"two files": {Certificate: inside("server.pem"), Key: inside("server.key"), Authorities: inside("authorities.pem")},
	} {
		for i := range 200 {
			swapped := make(chan error, 1)
			go func() { swapped <- swap([]string{"two", "one"}[i%2]) }()
			_, err := fulmar.LoadCertificates(files, nil)
			if err := errors.Join(err, <-swapped); err != nil {
				t.Fatalf("%s, time %d: %v", name, i, err)
			}
		}
	}
}
