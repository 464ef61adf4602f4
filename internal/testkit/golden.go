package testkit

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// updateFlag makes Golden write instead of compare. Main registers it, so there
// is one flag for all packages.
const updateFlag = "update"

// Golden fails the test if got is not what the file at path holds. The failure
// shows the differing lines and the command that rewrites the file.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if updating() {
		writeGolden(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		t.Errorf("%s does not exist. To write it: %s", path, updateCommand(t.Name()))
	case err != nil:
		t.Errorf("golden file: %v", err)
	case !bytes.Equal(got, want):
		t.Errorf("%s differs (- is the file, + is what the test got):\n%sTo accept: %s",
			path, lineDiff(string(want), string(got)), updateCommand(t.Name()))
	}
}

func updating() bool {
	f := flag.Lookup(updateFlag)
	return f != nil && f.Value.String() == "true"
}

func writeGolden(t testing.TB, path string, got []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatalf("golden file: %v", err)
	}
	if err := os.WriteFile(path, got, 0o644); err != nil {
		t.Fatalf("golden file: %v", err)
	}
}

// updateCommand returns a command that works in any folder of the module.
func updateCommand(test string) string {
	name := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		name = strings.TrimSuffix(info.Path, ".test")
	}
	var pattern []string
	for _, part := range strings.Split(test, "/") {
		pattern = append(pattern, "^"+part+"$")
	}
	return fmt.Sprintf("go test %s -run '%s' -%s", name, strings.Join(pattern, "/"), updateFlag)
}
