package protofile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/cmd/fulmar/protofile"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

const prefix = "example.com/shop/gen"

// archive is a run and its files in one text: an optional first line "# load: file... -I
// folder -namespace old=new -existing -prefix path", then the files, each below a line
// "-- name --". Without a first line the first file is loaded.
func archive(text string) (*protofile.FrontEnd, gen.LoadRequest) {
	front, request := &protofile.FrontEnd{}, gen.LoadRequest{ImportPrefix: prefix}
	var words []string
	if rest, found := strings.CutPrefix(text, "# load: "); found {
		var line string
		line, text, _ = strings.Cut(rest, "\n")
		words = strings.Fields(line)
	}
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-existing":
			front.ExistingMessages = true
		case words[i] == "-noprefix":
			request.ImportPrefix = ""
		case words[i] == "-prefix" && i+1 < len(words):
			i++
			request.ImportPrefix = words[i]
		case words[i] == "-namespace" && i+1 < len(words):
			i++
			old, other, _ := strings.Cut(words[i], "=")
			request.Namespaces = map[string]string{old: other}
		case words[i] == "-I" && i+1 < len(words):
			i++
			request.IncludeDirs = append(request.IncludeDirs, words[i])
		default:
			request.Files = append(request.Files, words[i])
		}
	}
	files, name := idl.Memory{}, "main.proto"
	for line := range strings.Lines(text) {
		if next, found := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- "); found {
			name, line = next, ""
			if len(request.Files) == 0 {
				request.Files = []string{name}
			}
		}
		files[name] += line
	}
	front.FileSystem = files
	return front, request
}

func said(list []gen.Diagnostic) string {
	var text strings.Builder
	for _, one := range list {
		text.WriteString(one.String() + "\n")
	}
	return text.String()
}

func golden(t *testing.T, folder string, run func(t *testing.T, text string) string) {
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.proto"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in testdata/%s: %v", folder, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".proto"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, strings.TrimSuffix(path, ".proto")+".txt", []byte(run(t, string(text))))
		})
	}
}

// TestLoad_ReportsErrors: all that is wrong, with positions, and what to do.
func TestLoad_ReportsErrors(t *testing.T) {
	golden(t, "errors", func(t *testing.T, text string) string {
		front, request := archive(text)
		loaded := front.Load(request)
		if loaded.Program != nil || loaded.Files != nil || len(loaded.Diagnostics) == 0 {
			t.Errorf("loaded without an error")
		}
		return said(loaded.Diagnostics)
	})
}

// TestLoad_Generates: what comes of definitions, messages and services, twice alike.
func TestLoad_Generates(t *testing.T) {
	golden(t, "golden", func(t *testing.T, text string) string {
		first := generated(t, text)
		if again := generated(t, text); again != first {
			t.Errorf("another run gives something else")
		}
		return first
	})
}

func generated(t *testing.T, text string) string {
	t.Helper()
	front, request := archive(text)
	loaded := front.Load(request)
	if loaded.Program == nil {
		t.Fatal(said(loaded.Diagnostics))
	}
	printed, diagnostics := emit.Generate(loaded.Program, emit.Options{ImportPrefix: request.ImportPrefix})
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	var all strings.Builder
	all.WriteString(said(loaded.Diagnostics))
	for _, file := range loaded.Files {
		fmt.Fprintf(&all, "-- %s --\n%s", file.Path, file.Content)
	}
	for _, file := range printed {
		fmt.Fprintf(&all, "-- %s --\n%s", file.Path, file.Content())
	}
	return all.String()
}
