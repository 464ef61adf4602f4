package idl_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// parseArchive reads the options of a run and its files from one text: an
// optional first line "# load: file... -I folder -negative -implicit=apache
// -namespace old=new" without a break, then the files, each below a line
// "-- name --". Text without such lines is main.thrift. Without a first line, the
// first file is loaded.
func parseArchive(text string) idl.Options {
	var options idl.Options
	words := []string{}
	if rest, found := strings.CutPrefix(text, "# load: "); found {
		var line string
		line, text, _ = strings.Cut(rest, "\n")
		words = strings.Fields(line)
	}
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-implicit=apache":
			options.ImplicitIDs = idl.ImplicitIDsApache
		case words[i] == "-implicit=thriftgo":
			options.ImplicitIDs = idl.ImplicitIDsThriftgo
		case words[i] == "-negative":
			options.AllowNegativeIDs = true
		case words[i] == "-namespace" && i+1 < len(words):
			i++
			old, other, _ := strings.Cut(words[i], "=")
			options.Namespaces = map[string]string{old: other}
		case words[i] == "-I" && i+1 < len(words):
			i++
			options.IncludeDirs = append(options.IncludeDirs, words[i])
		default:
			options.Files = append(options.Files, words[i])
		}
	}
	files := idl.Memory{}
	name := "main.thrift"
	if !strings.HasPrefix(text, "-- ") {
		text = "-- main.thrift --\n" + text
	}
	for line := range strings.Lines(text) {
		if next, found := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- "); found {
			// A file has one name, as Memory would find it by any.
			name = strings.TrimPrefix(path.Join("/", next), "/")
			if len(options.Files) == 0 {
				options.Files = []string{name}
			}
			line = ""
		}
		files[name] += line
	}
	options.FileSystem = files
	return options
}

// golden runs one case for every definition in a folder of testdata, and
// compares what it returns with the text file beside the definition.
func golden(t *testing.T, folder string, run func(t *testing.T, options idl.Options) string) {
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.thrift"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in testdata/%s: %v", folder, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".thrift"), func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, parseArchive(string(source)))
			testkit.Golden(t, strings.TrimSuffix(path, ".thrift")+".txt", []byte(got))
		})
	}
}

func TestLoad_ReportsErrors(t *testing.T) {
	golden(t, "errors", func(t *testing.T, options idl.Options) string {
		program, diagnostics := idl.Load(options)
		if program != nil || !diagnostics.HasErrors() {
			t.Errorf("loaded without an error")
		}
		return diagnostics.String()
	})
}
