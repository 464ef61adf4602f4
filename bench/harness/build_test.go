//go:build linux

package harness

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inC is a suite with a program in C.
func inC(t *testing.T, source string) (root string, suite Suite) {
	t.Helper()
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bench", "net"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bench", "net", "client.c"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	return root, Suite{Client: Program{Module: "bench", Package: "net/client.c"}}
}

func TestBuild_CompilesC(t *testing.T) {
	root, suite := inC(t, "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n")
	folder := filepath.Join(root, "bin")
	var log bytes.Buffer
	if err := Build(t.Context(), root, suite, folder, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.Bytes())
	}
	if output := printed(t, filepath.Join(folder, "net-client")); output != "hello\n" {
		t.Errorf("the program printed %q", output)
	}
}

// printed is what a program prints.
func printed(t *testing.T, program string) string {
	t.Helper()
	output, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func TestBuild_SaysWhatIsWrong(t *testing.T) {
	root, suite := inC(t, "int main(void) { return nothing; }\n")
	var log bytes.Buffer
	err := Build(t.Context(), root, suite, filepath.Join(root, "bin"), &log)
	if err == nil || !strings.Contains(err.Error(), "building net/client.c of module bench") || !strings.Contains(log.String(), "nothing") {
		t.Errorf("%v, and %q in the log; want the file and the compiler's words", err, log.String())
	}
	t.Setenv("CC", "no-such-compiler")
	err = Build(t.Context(), root, suite, filepath.Join(root, "bin"), &log)
	if err == nil || !strings.Contains(err.Error(), `no C compiler "no-such-compiler"`) {
		t.Errorf("%v, want one that names the compiler", err)
	}
}
