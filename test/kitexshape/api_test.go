package kitexshape_test

import (
	"bytes"
	"fmt"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fulmar-rpc/fulmar/test/kitexshape/gen/"

// TestShape_DeclaresWhatKitexDeclares goes through everything that Kitex's code lets
// others use, and wants it in ours with the same type, tags and value. Not looked for
// are services, whose names the guide lists, and what Kitex exports for itself.
func TestShape_DeclaresWhatKitexDeclares(t *testing.T) {
	packages := load(t, "kitex/shape", "kitex/common", "kitex/outer", "kitex/inner", "fulmar/shape", "fulmar/common", "fulmar/outer", "fulmar/inner")
	for name, least := range map[string]int{"shape": 40, "common": 40, "outer": 40, "inner": 10} {
		kitex := declarations(packages["kitex/"+name])
		ours := declarations(packages["fulmar/"+name])
		if len(kitex) < least {
			t.Errorf("%s: Kitex declares %d things, which cannot be all", name, len(kitex))
		}
		for _, what := range slices.Sorted(maps.Keys(kitex)) {
			if got, found := ours[what]; !found {
				t.Errorf("%s: %s is missing: %s", name, what, kitex[what])
			} else if got != kitex[what] {
				t.Errorf("%s: %s\n is %s\nnot %s", name, what, got, kitex[what])
			}
		}
	}
}

// load returns packages below gen by their names there.
func load(t *testing.T, names ...string) map[string]*types.Package {
	t.Helper()
	arguments := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, name := range names {
		arguments = append(arguments, module+name)
	}
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := map[string]string{}
	for line := range bytes.Lines(output) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		files[path] = file
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	packages := map[string]*types.Package{}
	for _, name := range names {
		if packages[name], err = imports.Import(module + name); err != nil {
			t.Fatal(err)
		}
	}
	return packages
}

// ignored are the names that others have no use for: Kitex's guard against unused
// imports, arguments and results of methods, and how FastRead is split.
var ignored = regexp.MustCompile(`^KitexUnusedProtection$|^(New)?(Forest|Health|Nested)[A-Z][A-Za-z]*(Args|Result)(_|$)|\.FastReadField[0-9_]+$`)

// declarations describes all exported names of a package, and fields and methods of
// types.
func declarations(pkg *types.Package) map[string]string {
	all := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() || ignored.MatchString(name) {
			continue
		}
		all[name] = describe(object)
		if declared, ok := object.(*types.TypeName); ok {
			describeType(all, name, declared)
		}
	}
	maps.DeleteFunc(all, func(name, _ string) bool { return ignored.MatchString(name) })
	return all
}

func describe(object types.Object) string {
	text := fmt.Sprintf("%T %s", object, typeText(object.Type()))
	switch object := object.(type) {
	case *types.Const:
		// Whether 1.5e3 is a number with a fraction is nothing that one can see.
		text = "const " + typeText(object.Type()) + " " + constant.ToFloat(object.Val()).ExactString()
		if object.Val().Kind() != constant.Float && object.Val().Kind() != constant.Int {
			text = "const " + typeText(object.Type()) + " " + object.Val().ExactString()
		}
	case *types.TypeName:
		text = "type alias " + typeText(types.Unalias(object.Type()))
		if !object.IsAlias() {
			text = "type"
		}
	}
	return text
}

// describeType adds fields and methods of a type, and what it is.
func describeType(all map[string]string, name string, declared *types.TypeName) {
	underlying := declared.Type().Underlying()
	switch underlying := underlying.(type) {
	case *types.Struct:
		for i := range underlying.NumFields() {
			field := underlying.Field(i)
			all[name+"."+field.Name()] = fmt.Sprintf("field %d %s %s", i, typeText(field.Type()), underlying.Tag(i))
		}
	case *types.Interface:
		// A service, which in ours is an alias of the interface of servers.
		all[name] = "interface"
	default:
		all[name] += " " + typeText(underlying)
	}
	methods := types.NewMethodSet(declared.Type())
	if _, isInterface := underlying.(*types.Interface); !isInterface {
		methods = types.NewMethodSet(types.NewPointer(declared.Type()))
	}
	for i := range methods.Len() {
		method := methods.At(i).Obj()
		if method.Exported() {
			all[name+"."+method.Name()] = typeText(method.Type())
		}
	}
}

// typeText is a type without what may differ: where packages are, names of parameters
// and results, and whether any is spelled interface{}.
func typeText(t types.Type) string {
	if signature, ok := t.(*types.Signature); ok {
		return "func" + tupleText(signature.Params()) + tupleText(signature.Results())
	}
	text := types.TypeString(t, func(pkg *types.Package) string { return pkg.Name() })
	text = strings.ReplaceAll(text, "interface{}", "any")
	// Another interface with the same method: what has one of the types has the other.
	return strings.ReplaceAll(text, "methods.NocopyWriter", "thrift.NocopyWriter")
}

func tupleText(tuple *types.Tuple) string {
	var parts []string
	for i := range tuple.Len() {
		parts = append(parts, typeText(tuple.At(i).Type()))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
