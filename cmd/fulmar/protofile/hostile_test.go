package protofile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/cmd/fulmar/protofile"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

func load(text string) gen.Loaded {
	front := &protofile.FrontEnd{FileSystem: idl.Memory{"a.proto": text}}
	return front.Load(gen.LoadRequest{Files: []string{"a.proto"}, ImportPrefix: prefix})
}

// TestLoad_HostileFilesAreRefused: what would take stack or memory without end is an error
// that says where.
func TestLoad_HostileFilesAreRefused(t *testing.T) {
	const head = "syntax = \"proto3\";\npackage a;\n"
	for name, test := range map[string]struct{ text, want string }{
		"nested messages":   {head + strings.Repeat("message M {", 200_000), "a.proto:3:1: brackets are nested too deeply (limit 64)"},
		"nested options":    {head + "option x = " + strings.Repeat("{a:", 1_000_000), "brackets are nested too deeply"},
		"nested lists":      {head + "option x = {a: " + strings.Repeat("[", 1_000_000), "brackets are nested too deeply"},
		"angle brackets":    {head + "option x = {a " + strings.Repeat("<a ", 1_000_000), "brackets are nested too deeply"},
		"behind comments":   {head + "/* \n */ // {\n" + strings.Repeat("message M { // \n", 100), "a.proto:69:1: brackets are nested too deeply"},
		"behind a string":   {head + "option x = \"\\\"{{\n" + strings.Repeat("{", 100), "a.proto:4:1: brackets are nested too deeply"},
		"very many words":   {head + strings.Repeat(";", limits.IDLWords), fmt.Sprintf("too many words in all files together (limit %d)", limits.IDLWords)},
		"very long":         {head + "//" + strings.Repeat("x", limits.IDLBytes), "too long (limit 16777216 bytes in all files together)"},
		"no end":            {head + "/*" + strings.Repeat("{", 100), "a.proto:3:1: syntax error"},
		"very many errors":  {head + strings.Repeat("message M { X x = 1; }\n", 10_000), "too many errors (limit 100), the rest is not shown"},
		"a long name":       {head + "message M {} service S { rpc " + strings.Repeat("x", 2*limits.IDLNameBytes) + "(M) returns (M); }", "the names of service and method have 2052 bytes together (limit 1024)"},
		"control character": {head + "message \x1b[31mM {}", "a.proto:3:9: invalid control character"},
		"nothing":           {"\xff\xfe", "a.proto"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := load(test.text)
			text := said(loaded.Diagnostics)
			if loaded.Program != nil || !strings.Contains(text, test.want) || len(text) > 200<<10 {
				t.Errorf("%.2000s\nwant %q", text, test.want)
			}
			if strings.ContainsAny(text, "\x1b") {
				t.Errorf("a terminal would obey: %q", text)
			}
		})
	}
}

// large is a file with so many messages.
func large(messages int) string {
	var text strings.Builder
	text.WriteString("syntax = \"proto3\";\npackage a;\n")
	for i := range messages {
		fmt.Fprintf(&text, "message M%d { string name = 1; repeated M%d list = 2; map<string, int64> all = 3; }\n", i, (i+1)%messages)
	}
	text.WriteString("service S { rpc Do(M1) returns (M2); }\n")
	return text.String()
}

// TestLoad_BoundsLargeFiles: what takes the printer of Go minutes is refused, and what does
// not takes memory that a machine has.
func TestLoad_BoundsLargeFiles(t *testing.T) {
	if text := said(load(large(10_000)).Diagnostics); !strings.Contains(text, "a.proto: has too many names (limit about 20000, got ") {
		t.Errorf("10,000 messages: %.2000s", text)
	}
	text := large(1_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loaded := load(text)
	runtime.ReadMemStats(&after)
	if loaded.Program == nil || len(loaded.Files) != 1 {
		t.Fatalf("%.2000s", said(loaded.Diagnostics))
	}
	if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 512 {
		t.Errorf("%d MiB were allocated for %d KiB", taken, len(text)>>10)
	}
}

// TestLoad_ReadsWhatWasNamed: no import leads out of the folders that the user named.
func TestLoad_ReadsWhatWasNamed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.proto")
	folder := t.TempDir()
	for name, text := range map[string]string{
		outside:                          "syntax = \"proto3\";\n",
		filepath.Join(folder, "a.proto"): "syntax = \"proto3\";\nimport \"link.proto\";\nimport \"folder\";\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link.proto")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	loaded := (&protofile.FrontEnd{}).Load(gen.LoadRequest{Files: []string{filepath.Join(folder, "a.proto")}, IncludeDirs: []string{folder}, ImportPrefix: prefix})
	if text := said(loaded.Diagnostics); !strings.Contains(text, `a.proto:2:8: import "link.proto": lies outside the folders of -I`) {
		t.Errorf("said %s", text)
	}
}
