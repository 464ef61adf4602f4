package emit_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// manyStructs declares structs of ten fields, one of each usual type.
func manyStructs(count int) string {
	types := []string{"i32", "i64", "string", "bool", "double", "binary", "list<string>", "map<string, i64>", "optional i32", "optional S0"}
	var text strings.Builder
	text.WriteString("namespace go x\n")
	for n := range count {
		fmt.Fprintf(&text, "struct S%d {\n", n)
		for i, name := range types {
			fmt.Fprintf(&text, "  %d: %s field_%d\n", i+1, name, i)
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// generationCost returns what loading and generating allocates.
func generationCost(t testing.TB, text string) (bytes, allocations uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	generateText(t, text)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

// TestGenerate_CostsLittleForEachStruct bounds what a struct of ten fields
// costs. It was 36 KiB in 700 allocations when this was written, 90 KiB in 1,870
// when codecs were parsed and formatted like everything else, 44 KiB in 770 with
// methods, and is 58 KiB in 820 with descriptors.
func TestGenerate_CostsLittleForEachStruct(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector makes sync.Pool forget at random, and go/format lives on it")
	}
	const count, bytesMax, allocationsMax = 500, 72 << 10, 1000
	generateText(t, manyStructs(1)) // what is made once
	bytes, allocations := generationCost(t, manyStructs(count))
	t.Logf("%d bytes, %d allocations for each struct", bytes/count, allocations/count)
	if bytes > count*bytesMax || allocations > count*allocationsMax {
		t.Errorf("a struct costs %d bytes (limit %d) in %d allocations (limit %d)", bytes/count, bytesMax, allocations/count, allocationsMax)
	}
	twice, _ := generationCost(t, manyStructs(2*count))
	if twice*10 > bytes*22 {
		t.Errorf("%d structs cost %d bytes, twice as many %d: more than 2.2 times as much", count, bytes, twice)
	}
}

// numbered repeats a format for the numbers from 1.
func numbered(count int, format string) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, format, i+1)
	}
	return text.String()
}

// TestGenerate_HostileDefinitionsCostLittle has definitions of less than 1 MB
// that would take gigabytes if values repeated what their structs hold, or were
// put together before somebody asked how long they are.
func TestGenerate_HostileDefinitionsCostLittle(t *testing.T) {
	const longDefault = "struct S { 1: string a = TEXT, 2: i32 b }\n"
	for name, test := range map[string]struct{ definition, want string }{
		"values of a large struct":  {"struct S {" + numbered(30_000, "%d: optional i32 f%[1]d,") + "} const list<S> L = [" + strings.Repeat("{},", 3000) + "]", ""},
		"maps with a large key":     {"struct S {" + numbered(30_000, "%d: i32 f%[1]d,") + "} struct T {" + numbered(10_000, "%d: map<S, i32> f%[1]d,") + "}", ""},
		"values with many defaults": {"struct S {" + numbered(3000, "%d: i32 f%[1]d = 1,") + "} const map<i32, S> L = {" + numbered(30_000, "%d: {'f1': 2},") + "}", "is too long"},
		"values with long defaults": {longDefault + "const map<i32, S> L = {" + numbered(30_000, "%d: {'b': 1},") + "}", "is too long"},
		"defaults of long values":   {longDefault + "struct T {" + numbered(30_000, "%d: S f%[1]d = {'b': 1},") + "}", "is too long"},
	} {
		definition := "namespace go x\n" + strings.ReplaceAll(test.definition, "TEXT", "'"+strings.Repeat("x", 100_000)+"'")
		program := load(t, idl.Memory{"/main.thrift": definition})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, diagnostics := emit.Generate(program, emit.Options{})
		runtime.ReadMemStats(&after)
		if got := diagnostics.String(); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		const allocatedMax = 1 << 30 // at most 340 MiB, and 750 with the race detector
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: allocates %d MiB", name, allocated>>20)
		if allocated > allocatedMax {
			t.Errorf("%s: allocates %d MiB (limit %d)", name, allocated>>20, allocatedMax>>20)
		}
	}
}

func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func BenchmarkGenerate(b *testing.B) {
	files := idl.Memory{"/main.thrift": manyStructs(2000)}
	b.ReportAllocs()
	for b.Loop() {
		program, _ := idl.Load(idl.Options{Files: []string{"/main.thrift"}, FileSystem: files})
		emit.Generate(program, emit.Options{})
	}
}

// TestGenerate_CostsLittleForEachField has structs of very many fields, and a method of
// very many arguments.
func TestGenerate_CostsLittleForEachField(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector makes sync.Pool forget at random, and go/format lives on it")
	}
	for name, declaration := range map[string]struct{ begin, types, end string }{
		"texts":      {"struct S {", "string", "}"},
		"all kinds":  {"struct S {", "string,i32,optional i64,list<string>,required binary,map<i32; string>,optional string,required bool", "}"},
		"JSON":       {"struct S {", "map<binary; i32>", "}"},
		"a union":    {"union S {", "i32,string", "}"},
		"a method":   {"service S { void m(", "i32,string", ") }"},
		"exceptions": {"exception E {}\nservice S { void m() throws (", "E", ") }"},
	} {
		types := strings.Split(declaration.types, ",")
		wide := func(count int) string {
			var text strings.Builder
			text.WriteString("namespace go x\n" + declaration.begin + "\n")
			for n := range count {
				fmt.Fprintf(&text, "  %d: %s field_%d\n", n+1, strings.ReplaceAll(types[n%len(types)], ";", ","), n)
			}
			return text.String() + declaration.end + "\n"
		}
		const count = 2500
		bytes, _ := generationCost(t, wide(count))
		twice, _ := generationCost(t, wide(2*count))
		t.Logf("%s: %d bytes for each field, %d of twice as many", name, bytes/count, twice/count/2)
		if twice*10 > bytes*22 {
			t.Errorf("%s: %d fields cost %d bytes, twice as many %d: more than 2.2 times as much", name, count, bytes, twice)
		}
	}
}
