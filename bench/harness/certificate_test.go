package harness

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCertificate_IsTrustedByWhoHasIt(t *testing.T) {
	name, remove, err := certificateFile()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(content, content)
	if err != nil {
		t.Fatal(err)
	}
	for _, trusts := range []bool{true, false} {
		roots := x509.NewCertPool()
		if trusts {
			roots.AddCert(certificate.Leaf)
		}
		_, err = certificate.Leaf.Verify(x509.VerifyOptions{DNSName: "127.0.0.1", Roots: roots, CurrentTime: time.Now()})
		if (err == nil) != trusts {
			t.Errorf("a client that trusts it (%v) says %v", trusts, err)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(name)); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}
