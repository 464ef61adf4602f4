package emit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// TestImports_ManyPackagesOfOneName: each gets a number, however many there are.
func TestImports_ManyPackagesOfOneName(t *testing.T) {
	const packages = 12
	var types, includes, fields strings.Builder
	memory := idl.Memory{}
	for i := range packages {
		fmt.Fprintf(&types, "  %d: i64 t%d (go.type = \"example.com/p%d/kinds.T\")\n", i+1, i, i)
		fmt.Fprintf(&includes, "include \"f%d.thrift\"\n", i)
		fmt.Fprintf(&fields, "  %d: f%d.U u%d\n", packages+i+1, i, i)
		memory[fmt.Sprintf("/f%d.thrift", i)] = fmt.Sprintf("namespace go p%d.same.kinds\nstruct U { 1: i32 a }", i)
	}
	memory["/main.thrift"] = includes.String() + "namespace go a\nstruct S {\n" + types.String() + fields.String() + "}"
	program, diagnostics := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: memory})
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics)
	}
	for _, kitex := range []bool{false, true} {
		files, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: "example.com/gen", Kitex: kitex})
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics)
		}
		aliases := map[string]bool{}
		for _, file := range files {
			if file.Path != "a/main_types.go" {
				continue
			}
			for line := range strings.Lines(string(file.Content())) {
				if alias, _, found := strings.Cut(strings.TrimSpace(line), "\"example.com/"); found {
					aliases[alias] = true // empty for the one that needs none
				}
			}
		}
		want := packages
		if !kitex {
			want += packages // Kitex has no go.type
		}
		if len(aliases) != want {
			t.Errorf("kitex %v: %d aliases, want %d: %v", kitex, len(aliases), want, aliases)
		}
	}
}
