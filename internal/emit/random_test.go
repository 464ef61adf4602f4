package emit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// vocabulary are names that meet each other, Go's and those of generated code
// once they are spelled the Go way.
var vocabulary = strings.Fields(`a A _ _1 a_ get_a getA GetA Geta new New NewA new_a error Error string String type func
	thrift fulmar context ctx value key list n i ok r w s v pair entries element element2 args result success Success err
	options request reply ReadThrift writeThrift ParseA parse a_b aB AB A_B id ID Id url Server Client AServer AClient
	NewAClient RegisterAServer AServiceDesc AServiceName AaFullMethodName AaArgs AaResult aMethod nil true_ int8 len init main goto_ package1 fmt strconv
	errors math MustParseUUID Pair Opt ReplyError replyError implementation registrar exception missing seen set name
	equal Equal clone Clone detach depth Detach SizeThrift size marshal_json methods maps other theirs nesting String_ keyword`)

// author writes definitions at random.
type author struct {
	random *rand.Rand
	text   strings.Builder
	// types are names of types that may be used; structs may be used before
	// they are declared.
	types []string
}

func (a *author) printf(format string, arguments ...any) {
	fmt.Fprintf(&a.text, format, arguments...)
}

func pick[T any](a *author, from []T) T { return from[a.random.IntN(len(from))] }

// names returns up to limit different names.
func (a *author) names(limit int) []string {
	words := slices.Clone(vocabulary)
	a.random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:a.random.IntN(limit+1)]
}

func (a *author) typeName(depth int) string {
	base := []string{"bool", "i8", "i16", "i32", "i64", "double", "string", "binary", "uuid"}
	switch choice := a.random.IntN(8); {
	case choice < 3 || depth > 3:
		return pick(a, base)
	case choice < 6:
		return pick(a, slices.Concat(base, a.types, a.types))
	case choice == 6:
		return pick(a, []string{"list", "set"}) + "<" + a.typeName(depth+1) + ">"
	default:
		return "map<" + a.typeName(depth+1) + ", " + a.typeName(depth+1) + ">"
	}
}

// nested embeds a field.
const nested = " (thrift.nested = 'true')"

// fields writes fields; those of a union have no defaults, because only one of
// them could.
func (a *author) fields(category string, requiredness ...string) {
	for i, name := range a.names(8) {
		typeName := a.typeName(0)
		preset := ""
		if category != "union" {
			preset = a.preset(typeName)
		}
		a.printf("  %d: %s %s %s%s", i+1, pick(a, requiredness), typeName, name, preset)
		if category != "arguments" && a.random.IntN(3) == 0 {
			a.printf(nested)
		}
		a.printf("\n")
	}
}

// preset returns a default for some types, "" for the others.
func (a *author) preset(typeName string) string {
	values := map[string]string{
		"bool": "true", "i8": "-1", "i16": "0x10", "i32": "3", "i64": "4", "double": "5", "string": "'text'", "binary": "'b'",
		"uuid": "'01234567-89ab-cdef-0123-456789abcdef'", "included.S": "{'i': 2}", "included.E": "included.E.B", "included.L": "[{}, {'i': 1}]",
	}
	value := values[typeName]
	switch {
	case strings.HasPrefix(typeName, "list<"), strings.HasPrefix(typeName, "set<"):
		inner := values[strings.TrimSuffix(typeName[strings.Index(typeName, "<")+1:], ">")]
		value = "[" + inner + "]"
	case strings.HasPrefix(typeName, "map<"):
		value = "{}"
	}
	if value == "" || a.random.IntN(3) > 0 {
		return ""
	}
	return " = " + value
}

// write returns a definition, which may have errors.
func (a *author) write() string {
	a.printf("namespace go %s\n", pick(a, []string{"x", "x.thrift", "x.value", "context", "x.string"}))
	a.printf("include 'included.thrift'\n")
	all := slices.DeleteFunc(slices.Clone(vocabulary), func(name string) bool {
		return slices.Contains([]string{"string", "list", "set", "exception"}, name)
	})
	a.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	next := func(limit int) []string {
		names := all[:a.random.IntN(limit+1)]
		all = all[len(names):]
		return names
	}
	structs, typedefs, enums, exceptions, services := next(5), next(3), next(3), next(2), next(3)
	a.types = append(append(append([]string{"included.S", "included.E", "included.L"}, structs...), enums...), typedefs...)
	for _, name := range enums {
		a.printf("enum %s {\n", name)
		for _, value := range a.names(4) {
			a.printf("  %s\n", value)
		}
		a.printf("}\n")
	}
	for _, name := range typedefs {
		a.printf("typedef %s %s\n", a.typeName(0), name)
	}
	for _, name := range next(3) {
		a.printf("const %s %s\n", pick(a, []string{"i32", "i64", "double"}), name+" = 3")
		a.printf("const list<string> %s_list = ['a', 'b']\n", name)
	}
	for _, name := range structs {
		category := pick(a, []string{"struct", "struct", "union"})
		a.printf("%s %s {\n", category, name)
		a.fields(category, "", "", "optional")
		a.printf("}\n")
	}
	for _, name := range exceptions {
		a.printf("exception %s {\n", name)
		a.fields("exception", "", "optional", "required")
		a.printf("}\n")
	}
	for i, name := range services {
		extends := pick(a, append([]string{"", "extends included.V"}, prefixed("extends ", services[:i])...))
		a.printf("service %s %s {\n", name, extends)
		for _, method := range a.names(4) {
			a.method(method, exceptions)
		}
		a.printf("}\n")
	}
	return a.text.String()
}

func prefixed(prefix string, names []string) []string {
	var result []string
	for _, name := range names {
		result = append(result, prefix+name)
	}
	return result
}

func (a *author) method(name string, exceptions []string) {
	result := pick(a, []string{"void", "oneway void", a.typeName(0), a.typeName(0)})
	a.printf("  %s %s(", result, name)
	a.fields("arguments", "", "", "required")
	a.printf(")")
	if result != "oneway void" && len(exceptions) > 0 {
		a.printf(" throws (1: %s %s)", exceptions[0], pick(a, vocabulary))
	}
	a.printf("\n")
}

// FuzzGenerate_Names generates definitions of names that collide and checks
// that what comes out compiles.
func FuzzGenerate_Names(f *testing.F) {
	// All of them have to run within the seconds that make test gives to each target.
	for seed := range uint64(30) {
		f.Add(seed)
	}
	newChecker(f) // as in FuzzGenerate
	included := "namespace go other.thrift\nstruct S { 1: i32 i = 1 }\nenum E { A, B }\ntypedef list<S> L\nservice V { S get() }"
	f.Fuzz(func(t *testing.T, seed uint64) {
		a := &author{random: rand.New(rand.NewPCG(seed, 1))}
		text := a.write()
		const prefix = "example.com/gen"
		kitex := seed%2 == 1
		generated := func() ([]emit.File, idl.Diagnostics) {
			memory := idl.Memory{"/main.thrift": text, "/included.thrift": included}
			program, diagnostics := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: memory})
			if program == nil {
				t.Skip(diagnostics.String())
			}
			return emit.Generate(program, emit.Options{ImportPrefix: prefix, Kitex: kitex, KitexNested: kitex && seed%4 == 1})
		}
		files, diagnostics := generated()
		if diagnostics.HasErrors() { // not everything can be embedded, and what is has no other name
			text = strings.ReplaceAll(text, nested, "")
			files, diagnostics = generated()
		}
		for _, diagnostic := range diagnostics {
			if !strings.HasPrefix(diagnostic.Message, "annotation thrift.nested: has no effect ") {
				t.Fatalf("kitex %t: %s\n%s", kitex, text, diagnostics)
			}
		}
		c := newChecker(t)
		if err := c.check(files, prefix); err != nil {
			t.Errorf("kitex %t: %v\n%s", kitex, err, text)
			mustCheck(t, newChecker(t), files, prefix)
		}
	})
}
