package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const guide = "../../docs/guide/getting-started.md"

// TestGuide_CanBeFollowed does what the guide says, in an empty folder: it runs
// the guide's commands and writes the guide's files. The clone that the guide
// begins with is this one, and no module is downloaded, because all that are
// needed were for the tests.
func TestGuide_CanBeFollowed(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the guide's commands are for a Unix shell")
	}
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(root, filepath.Join(folder, "fulmar")); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(content), -1)
	var output string
	done := map[string]int{}
	for _, block := range blocks {
		language, text := block[1], block[2]
		switch {
		case language == "sh":
			output = shell(t, folder, text)
		case language == "thrift":
			write(t, filepath.Join(folder, "shop/orders.thrift"), text)
		case language == "go" && strings.Contains(text, "\npackage main\n"):
			write(t, filepath.Join(folder, "shop/main.go"), text)
		default:
			continue // Explains a part of what was written.
		}
		done[language]++
	}
	if done["sh"] != 3 || done["thrift"] != 1 || done["go"] != 1 {
		t.Errorf("followed %v; want 3 blocks of commands, a definition and a program", done)
	}
	wantLine := regexp.MustCompile(`(?m)^    (.*)$`)
	_, promised, _ := strings.Cut(string(content), "\nIt prints\n")
	promised, _, _ = strings.Cut(promised, "\nThe same program")
	var want strings.Builder
	for _, line := range wantLine.FindAllStringSubmatch(promised, -1) {
		want.WriteString(line[1] + "\n")
	}
	if want.Len() == 0 || output != want.String() {
		t.Errorf("the last commands printed %q, the guide says %q", output, want.String())
	}
	module, err := os.ReadFile(filepath.Join(folder, "shop/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range wantLine.FindAllStringSubmatch(string(content), -1) {
		if verb, _, _ := strings.Cut(line[1], " "); (verb == "require" || verb == "replace") && !strings.Contains(string(module), line[1]) {
			t.Errorf("go.mod lacks %q:\n%s", line[1], module)
		}
	}
}

// shell runs commands, in the folder of the module once there is one, and
// returns what they print.
func shell(t *testing.T, folder, commands string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "shop")); err == nil {
		folder = filepath.Join(folder, "shop")
	}
	var script strings.Builder
	for line := range strings.Lines(commands) {
		if !strings.HasPrefix(line, "git clone ") {
			script.WriteString(line)
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", script.String())
	command.Dir = folder
	// What the cache holds was verified when it was downloaded.
	command.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOSUMDB=off")
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script.String(), err, output, errors.String())
	}
	return string(output)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
