package idl_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// hostile inputs are made of a beginning and a pattern that is repeated up to
// the wanted size; % in a pattern counts from 1.
type hostile struct{ name, beginning, pattern, end string }

// ofSize repeats the pattern until the source has about that many bytes.
func (h hostile) ofSize(size int) string {
	pattern := len(h.pattern)
	if strings.Contains(h.pattern, "%") {
		pattern += len("10000")
	}
	return h.repeat(size / pattern)
}

func (h hostile) repeat(count int) string {
	var text strings.Builder
	text.WriteString(h.beginning)
	for i := range count {
		text.WriteString(strings.ReplaceAll(h.pattern, "%", strconv.Itoa(i+1)))
	}
	text.WriteString(h.end)
	return text.String()
}

// load loads a source. One that takes more than linear time runs into the time
// limit of go test.
func (h hostile) load(t *testing.T, source string) idl.Diagnostics {
	t.Helper()
	files := idl.Memory{"a.thrift": source, "b.thrift": ""}
	_, diagnostics := idl.Load(idl.Options{Files: []string{"a.thrift"}, FileSystem: files})
	return diagnostics
}

// Each pattern would be slow, deep or large in some step if that step were not
// linear and limited.
func TestLoad_HostileInputEndsPromptly(t *testing.T) {
	cases := []hostile{
		{"deep type", "typedef ", "list<", ""},
		{"deep map", "typedef ", "map<i32,", ""},
		{"deep type in a type", "typedef list<i32", "> list<", ""},
		{"deep value", "const list<i32> X = ", "[", ""},
		{"deep map value", "const list<i32> X = ", "{1:", ""},
		{"deep hints", "struct A {", "1: i32 a xsd_attrs {", ""},
		{"open parentheses", "struct A { 1: i32 a ", "(", ""},
		{"open brackets", "struct A { 1: i32 a = ", "[ ( { ", ""},
		{"field ids in a brace in parentheses", "struct A { 1: i32 a " + strings.Repeat("(", 1<<18) + "{", "\n1:", ""},
		{"field ids in parentheses in a brace", "struct A { 1: i32 a {" + strings.Repeat("(", 1<<18), "\n1:", ""},
		{"brackets in parentheses", "struct A { 1: i32 a " + strings.Repeat("(", 1<<18), "[ )", ""},
		{"closing braces", "", "}", ""},
		{"closing what is not open", "struct A { ( [", " ) ] ", ""},
		{"fields without ids", "struct A {", "i32 a% ", "}"},
		{"fields with one id", "struct A {", "1: i32 a% ", "}"},
		{"unclosed structs", "", "struct A {\n", ""},
		{"unclosed methods", "service A {", "void a(\n", ""},
		{"duplicates", "", "struct A {}\n", ""},
		{"unknown types", "", "typedef A% B%\n", ""},
		{"open comment", "/*", "x\n", ""},
		{"comments", "", "/**/", ""},
		{"lines of comments", "", "//\n", "struct A {}"},
		{"open string", `const string X = "`, "x", ""},
		{"open strings", "", "\"\n", ""},
		{"escapes", `const string X = "`, `\n`, `"`},
		{"bad escapes", `const string X = "`, `\q`, `"`},
		{"half characters", `const string X = "`, `\ud800`, `"`},
		{"long name", "struct ", "x", " {}"},
		{"long reference", "typedef ", "x.", "x Y"},
		{"long number", "const i32 X = ", "9", ""},
		{"long double", "const double X = 1.", "9", ""},
		{"unknown characters", "", "@", ""},
		{"unknown characters and blanks", "", "@ ", ""},
		{"slashes", "", "/ ", ""},
		{"zero bytes", "", "\x00", ""},
		{"keywords", "", "struct ", ""},
		{"lines of keywords", "", "struct\n", ""},
		{"senum", "senum A {", "'a' ", "}"},
		{"one include", "", "include 'b.thrift'\n", ""},
		{"missing includes", "", "include '%.thrift'\n", ""},
		{"namespaces", "", "namespace x% y\n", ""},
		{"warnings", "const list<i32> X = [", "011 ", "]"},
		{"values of a large struct", "struct S { " + fields(5000) + "} const list<S> X = [", "{}", "]"},
		{"children of a large service", "service P { void m(" + fields(5000) + ") } ", "service S% extends P {}\n", ""},
		{"typedef chain", "typedef T1 T0\n", "typedef T%0 T%\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.load(t, c.ofSize(1<<20))
		})
	}
}

// The generator may take 1 GiB. What lives at any moment is less than all
// that was ever allocated.
func TestLoad_LargestInputFitsMemory(t *testing.T) {
	const allocatedMax = 900 << 20
	cases := []struct {
		hostile
		nodes int // of one repetition
	}{
		{hostile{"structs", "", "struct S%{1:i32 a}\n", ""}, 3},
		{hostile{"values", "const list<i32> X = [", "1 ", "]"}, 1},
		{hostile{"map", "const map<i32,i32> X = {", "%:1 ", "}"}, 2},
		{hostile{"services", "service S0 {}\n", "service S% extends S0 { void m() }\n", ""}, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			// Whichever limit comes first.
			nodes, bytes := limits.IDLNodes*9/10/c.nodes, limits.IDLBytes/(len(c.pattern)+2*len("1000000"))
			source := c.repeat(min(nodes, bytes))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if diagnostics := c.load(t, source); diagnostics.HasErrors() {
				t.Fatal(diagnostics)
			}
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("allocates %d MiB", allocated>>20)
			if allocated > allocatedMax {
				t.Errorf("allocates %d MiB (limit %d)", allocated>>20, allocatedMax>>20)
			}
		})
	}
}

// fields declares many optional fields.
func fields(count int) string {
	return hostile{pattern: "%: optional i32 f% "}.repeat(count)
}

// A long string can be named any number of times, also as another type.
func TestLoad_LimitsTextThatIsWrittenOut(t *testing.T) {
	text := "const string A = '" + strings.Repeat("x", 1<<16) + "'\n"
	for name, list := range map[string]string{
		"string": "const list<string> L = [",
		"binary": "const list<binary> L = [",
		"map":    "const map<i32, binary> L = {",
	} {
		h := hostile{name: name, beginning: text + list, pattern: "A,", end: "]"}
		if name == "map" {
			h.pattern, h.end = "%: A,", "}"
		}
		if diagnostics := h.load(t, h.repeat(200)); diagnostics.HasErrors() {
			t.Errorf("%s: 13 MB: %s", name, diagnostics)
		}
		if diagnostics := h.load(t, h.repeat(300)); !strings.Contains(diagnostics.String(), "limit 1048576 types, values, and parts of 16 bytes of strings") {
			t.Errorf("%s: 20 MB: %q", name, diagnostics)
		}
	}
}

// Each line doubles what the one before it stands for.
func TestLoad_LimitsWhatIsWrittenOut(t *testing.T) {
	cases := map[string]struct{ first, format string }{
		"typedefs":  {"typedef i32 X0\n", "typedef map<X%[1]d,X%[1]d> X%[2]d\n"},
		"constants": {"typedef i32 T0\nconst i32 X0 = 1\n", "typedef list<T%[1]d> T%[2]d\nconst T%[2]d X%[2]d = [X%[1]d,X%[1]d]\n"},
		"defaults":  {"typedef i32 T0\nconst i32 X0 = 1\n", "typedef list<T%[1]d> T%[2]d\nconst T%[2]d X%[2]d = [X%[1]d,X%[1]d]\nstruct S%[2]d { 1: T%[2]d a = X%[2]d }"},
		"services":  {"service X0 { void m0() }\n", "service X%[2]d extends X%[1]d { void m%[2]d() }\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var source strings.Builder
			source.WriteString(c.first)
			for i := range 100 {
				fmt.Fprintf(&source, c.format, i, i+1)
			}
			h := hostile{name: name}
			if diagnostics := h.load(t, source.String()); !strings.Contains(diagnostics.String(), "limit ") {
				t.Errorf("expected an error with a limit, got\n%s", diagnostics)
			}
		})
	}
}

// TestLoad_SaysOnceThatServicesInheritTooFar: of the first one that does.
func TestLoad_SaysOnceThatServicesInheritTooFar(t *testing.T) {
	var source strings.Builder
	source.WriteString("service S0 {}\n")
	for i := range 1000 {
		fmt.Fprintf(&source, "service S%d extends S%d {}\n", i+1, i)
	}
	want := fmt.Sprintf("a.thrift:%d:9: service S%d: extends a chain of services that is too long (limit %d)\n",
		limits.IDLTypeDepth+2, limits.IDLTypeDepth+1, limits.IDLTypeDepth)
	if diagnostics := (hostile{name: "services"}).load(t, source.String()); diagnostics.String() != want {
		t.Errorf("got\n%swant\n%s", diagnostics, want)
	}
}

// TestLoad_SaysOnceThatThereIsTooMuch: what follows from types and values that
// were given up half written out is not said.
func TestLoad_SaysOnceThatThereIsTooMuch(t *testing.T) {
	for name, c := range map[string]struct{ first, format string }{
		"typedefs":  {"typedef i32 X0\n", "typedef map<X%[1]d,X%[1]d> X%[2]d\n"},
		"constants": {"typedef i32 T0\nconst i32 X0 = 1\n", "typedef list<T%[1]d> T%[2]d\nconst T%[2]d X%[2]d = [X%[1]d,X%[1]d]\n"},
		"converted": {"typedef i32 T0\nconst i32 X0 = 1\n", "const list<list<i32>> Y%[2]d = [[X0,X0]]\ntypedef list<T%[1]d> T%[2]d\nconst T%[2]d X%[2]d = [X%[1]d,X%[1]d]\n"},
	} {
		var source strings.Builder
		source.WriteString(c.first)
		for i := range 25 {
			fmt.Fprintf(&source, c.format, i, i+1)
		}
		h := hostile{name: name}
		diagnostics := h.load(t, source.String())
		if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Message, "too much in one run") {
			t.Errorf("%s: %s", name, diagnostics)
		}
	}
}
