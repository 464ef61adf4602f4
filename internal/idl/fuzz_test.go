package idl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// FuzzLoad loads archives as the golden cases have them.
func FuzzLoad(f *testing.F) {
	paths, err := filepath.Glob("testdata/*/*.thrift")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source))
	}
	f.Fuzz(func(t *testing.T, archive string) {
		options := parseArchive(archive)
		program, diagnostics := idl.Load(options)
		checkDiagnostics(t, options, diagnostics)
		if (program == nil) != diagnostics.HasErrors() {
			t.Fatalf("program %v with\n%s", program, diagnostics)
		}
		if program == nil {
			return
		}
		checkProgram(t, program)
		again, _ := idl.Load(options)
		first, second := &dumper{}, &dumper{}
		first.program(program)
		second.program(again)
		if first.String() != second.String() {
			t.Errorf("loading twice gives\n%s and\n%s", first, second)
		}
	})
}

func checkDiagnostics(t *testing.T, options idl.Options, diagnostics idl.Diagnostics) {
	t.Helper()
	if len(diagnostics) > 2*limits.IDLErrors+1 {
		t.Errorf("%d diagnostics are too many", len(diagnostics))
	}
	for i, d := range diagnostics {
		if i > 0 && d == diagnostics[i-1] {
			t.Errorf("comes twice: %s", d)
		}
		if d.Position.Line == 0 {
			continue // about a file as a whole
		}
		content, err := options.FileSystem.ReadFile(d.Position.File, limits.IDLBytes)
		if err != nil {
			t.Errorf("%s: %v", d, err)
			continue
		}
		lines := strings.Split(string(content), "\n")
		line, column := d.Position.Line, d.Position.Column
		if line > len(lines) || column < 1 || column > len(lines[line-1])+1 {
			t.Errorf("outside of the file: %s", d)
		}
	}
}

// checkProgram checks what emitters rely on.
func checkProgram(t *testing.T, program *schema.Program) {
	t.Helper()
	files := make(map[*schema.File]bool)
	for _, file := range program.Files {
		for _, include := range file.Includes {
			if !files[include] {
				t.Errorf("%s comes before %s, which it includes", file.Path, include.Path)
			}
		}
		files[file] = true
		for _, s := range file.Structs {
			checkFields(t, s.Fields)
		}
		for _, s := range file.Services {
			for _, m := range s.Methods {
				checkFields(t, m.Arguments)
				checkFields(t, m.Throws)
			}
		}
	}
	packages := make(map[*schema.Package]bool)
	for _, p := range program.Packages {
		for _, imported := range p.Imports {
			if !packages[imported] {
				t.Errorf("package %s comes before %s, which it imports", p.Path, imported.Path)
			}
		}
		packages[p] = true
		if strings.Contains("/"+p.Path+"/", "//") || strings.ContainsAny(p.Path, ".\\ ") {
			t.Errorf("package path %q", p.Path)
		}
	}
}

func checkFields(t *testing.T, fields []*schema.Field) {
	t.Helper()
	ids := make(map[int16]bool)
	for _, f := range fields {
		if ids[f.ID] {
			t.Errorf("field id %d comes twice", f.ID)
		}
		ids[f.ID] = true
		checkType(t, f.Type)
		if f.Default != nil && f.Default.Type != f.Type {
			t.Errorf("default of %s has another type", f.Name)
		}
	}
}

func checkType(t *testing.T, typ *schema.Type) {
	t.Helper()
	valid := false
	switch typ.Kind {
	case schema.KindInvalid, schema.KindVoid:
	case schema.KindEnum:
		valid = typ.Enum != nil
	case schema.KindStruct:
		valid = typ.Struct != nil
	case schema.KindMap:
		valid = typ.Key != nil && typ.Element != nil
	case schema.KindList, schema.KindSet:
		valid = typ.Element != nil
	default:
		valid = true
	}
	if !valid {
		t.Errorf("incomplete type at %s", typ.Position)
	}
}
