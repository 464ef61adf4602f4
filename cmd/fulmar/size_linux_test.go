package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// largeDefinition declares 20,000 structs of ten fields, which refer to each
// other, and enums, constants, typedefs and a service beside them.
func largeDefinition() string {
	types := []string{"i32", "required i64", "string", "optional bool", "double", "binary", "list<string>", "map<string, i64>"}
	var text strings.Builder
	text.WriteString("namespace go large\n")
	for n := range 20_000 {
		fmt.Fprintf(&text, "/** Struct number %d. */\nstruct S%[1]d {\n", n)
		for i, name := range types {
			fmt.Fprintf(&text, "  %d: %s field_%[1]d\n", i+1, name)
		}
		fmt.Fprintf(&text, "  9: list<S%d> others\n  10: optional E%d kind = E%[2]d.FIRST\n}\n", (n*7919)%20_000, n%1000)
	}
	for n := range 1000 {
		fmt.Fprintf(&text, "enum E%d { FIRST = 1, SECOND, THIRD }\nconst i64 LIMIT_%[1]d = %[1]d\ntypedef list<S%[1]d> List%[1]d\n", n)
	}
	text.WriteString("service Large {\n")
	for n := range 1000 {
		fmt.Fprintf(&text, "  S%d get%[1]d(1: E%[1]d kind, 2: List%[1]d list)\n", n)
	}
	return text.String() + "}\n"
}

// TestGen_LargeDefinitionsFitAGigabyte runs the command on a definition with
// 20,000 structs and looks at the most memory that the process ever had. That
// and the processor time are in the log of the test; 326 MiB and 5.6 s when
// this was written.
func TestGen_LargeDefinitionsFitAGigabyte(t *testing.T) {
	folder := newFolder(t, "large.thrift", largeDefinition())
	run := command(t, folder, "gen", "large.thrift")
	finish(t, run).want(t, 0, "fulmar gen: 1 package, 4 files (4 written")
	wantTree(t, filepath.Join(folder, "gen"), "large/large_codec.go", "large/large_methods.go", "large/large_rpc.go", "large/large_types.go")
	const residentMax = 1 << 30
	usage := run.ProcessState.SysUsage().(*syscall.Rusage)
	resident := int64(usage.Maxrss) << 10 // Linux counts kibibytes
	t.Logf("%d MiB of memory, %v of processor time", resident>>20, run.ProcessState.UserTime()+run.ProcessState.SystemTime())
	if resident > residentMax {
		t.Errorf("%d MiB of memory (limit %d)", resident>>20, residentMax>>20)
	}
}
