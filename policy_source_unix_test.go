//go:build unix

package fulmar_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

// TestPolicyFile_PipesAreRefused: at once, and not when somebody writes to it.
func TestPolicyFile_PipesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fulmar.NewClient(fulmar.ClientConfig{Target: "10.0.0.1:1", PolicyFile: file})
	if err == nil || !strings.Contains(err.Error(), "PolicyFile: "+file+": it is no regular file (mode p") {
		t.Errorf("%v", err)
	}
}
