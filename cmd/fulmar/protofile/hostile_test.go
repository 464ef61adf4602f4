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
		"very many words":   {head + strings.Repeat(";\n", limits.IDLWords), fmt.Sprintf("too many words in all files together (limit %d)", limits.IDLWords)},
		"numbers on a line": {head + "message M {}\nmessage N { reserved 20001" + strings.Repeat(",20001", 20_000) + ";\n}", "a.proto:4:1: the line is too long: the columns of the words of all files add up to more than 536870912, of which those of this line are 5368"},
		"words on a line":   {head + strings.Repeat(";", 40_000), "a.proto:3:1: the line is too long"},
		"comments on one":   {head + "/*\n\n" + strings.Repeat("*//*", 30_000), "a.proto:5:1: the line is too long"},
		"behind a comment":  {head + "/*" + strings.Repeat("x", 8<<20) + "*/" + strings.Repeat(";", 100) + strings.Repeat("\n;;", 100), "a.proto:3:1: the line is too long"},
		"behind long text":  {head + "option x = \"" + strings.Repeat("x", 8<<20) + "\"" + strings.Repeat(";", 100), "a.proto:3:1: the line is too long"},
		"numbers of 10":     {head + tens(10_001), "a.proto: its description takes too many lines of code (limit 20000, got 2000"},
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

// tens is an enum with so many numbers whose encoding has a byte 10, twice for each.
func tens(count int) string {
	var text strings.Builder
	text.WriteString("enum E { A = 0;\n")
	for i := range count {
		fmt.Fprintf(&text, "reserved %d;\n", 10<<14+i)
	}
	text.WriteString("}\n")
	return text.String()
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
	if text := said(load(large(10_000)).Diagnostics); !strings.Contains(text, "a.proto: its description takes too many lines of code (limit 20000, got ") {
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

// TestLoad_BoundsTheTimeOfAllFiles: many files of which each may be printed, and files that
// are printed again for each that imports them publicly, which two imports in each make
// twice as often with each file.
func TestLoad_BoundsTheTimeOfAllFiles(t *testing.T) {
	many, twice := idl.Memory{}, idl.Memory{}
	var manyNames []string
	for i := range limits.ProtoDescriptionFiles + 1 {
		name := fmt.Sprintf("f%d.proto", i)
		manyNames = append(manyNames, name)
		many[name] = fmt.Sprintf("syntax = \"proto3\";\npackage f%d;\n%s", i, tens(limits.ProtoDescriptionLines/2-100))
	}
	for i := range 40 {
		text := fmt.Sprintf("syntax = \"proto3\";\npackage t%d;\n", i)
		for before := max(i-2, 0); before < i; before++ {
			text += fmt.Sprintf("import public \"t%d.proto\";\n", before)
		}
		twice[fmt.Sprintf("t%d.proto", i)] = text
	}
	for name, test := range map[string]struct {
		files idl.Memory
		names []string
	}{"many files": {many, manyNames}, "public imports": {twice, []string{"t39.proto"}}} {
		front := &protofile.FrontEnd{FileSystem: test.files}
		loaded := front.Load(gen.LoadRequest{Files: test.names, ImportPrefix: prefix})
		if text := said(loaded.Diagnostics); !strings.Contains(text, ".proto: the descriptions of all files together take too long to print (limit 4 files of 20000 lines") {
			t.Errorf("%s: %.2000s", name, text)
		}
	}
}

// TestLoad_AllowsLongText: a line may be long if little is behind what makes it so.
func TestLoad_AllowsLongText(t *testing.T) {
	text := "syntax = \"proto3\";\npackage a;\n//" + strings.Repeat("x", 1<<20) + "\noption java_package = \"" + strings.Repeat("x", 1<<20) + "\";\nmessage M {}\n"
	if loaded := load(text); loaded.Program == nil {
		t.Errorf("%.2000s", said(loaded.Diagnostics))
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
