//go:build unix

package yamlpolicy_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fulmar-rpc/fulmar/contrib/yamlpolicy"
)

// TestRead_PipesAreRefused: at once, and not when somebody writes to it.
func TestRead_PipesAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := yamlpolicy.Read(name); err == nil || !strings.Contains(err.Error(), "it is no regular file (mode p") {
		t.Errorf("%v", err)
	}
}
