package rpc

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSecure_SaysWhatIsWrongWithTheFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", empty, empty + ".absent"} {
		if _, _, err := secure(file); err == nil {
			t.Errorf("%q is taken for a certificate", file)
		}
	}
}
