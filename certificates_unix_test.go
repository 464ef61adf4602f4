//go:build unix

package fulmar_test

import (
	"log/slog"
	"os"
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
