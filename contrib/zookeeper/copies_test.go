package zookeeper_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCopies_AreThoseOfEtcd: the two modules share no module, and so these files; what is
// mended in one has to be mended in the other.
func TestCopies_AreThoseOfEtcd(t *testing.T) {
	for _, name := range []string{"address.go", "pace.go", "roster.go", "roster_test.go", "secret.go"} {
		here, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		there, err := os.ReadFile(filepath.Join("..", "etcd", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.Replace(there, []byte("package etcd\n"), []byte("package zookeeper\n"), 1), here) {
			t.Errorf("%s differs from that of contrib/etcd", name)
		}
	}
}
