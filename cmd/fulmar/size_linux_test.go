package main

import (
	"fmt"
	"path/filepath"
	"slices"
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
// and the processor time are in the log of the test; 465 MiB and 3.5 s, 550 MiB and
// 7.3 s in the shape of Kitex, 736 MiB and 25 s with views when this was written.
func TestGen_LargeDefinitionsFitAGigabyte(t *testing.T) {
	definition := largeDefinition()
	for _, test := range []struct {
		name, flag string
		files      []string
	}{
		{name: "default", files: []string{"codec", "methods", "rpc", "types"}},
		{name: "kitex", flag: "--shape=kitex", files: []string{"codec", "methods", "rpc", "types"}},
		{name: "views", flag: "--views", files: []string{"codec", "methods", "rpc", "types", "views"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // which is memory of all at once, but half of the time
			folder := newFolder(t, "large.thrift", definition)
			arguments := []string{"gen", "large.thrift"}
			if test.flag != "" {
				arguments = slices.Insert(arguments, 1, test.flag)
			}
			run := command(t, folder, arguments...)
			finish(t, run).want(t, 0, fmt.Sprintf("fulmar gen: 1 package, %d files (%[1]d written", len(test.files)))
			var names []string
			for _, file := range test.files {
				names = append(names, "large/large_"+file+".go")
			}
			wantTree(t, filepath.Join(folder, "gen"), names...)
			const residentMax = 1 << 30
			usage := run.ProcessState.SysUsage().(*syscall.Rusage)
			resident := int64(usage.Maxrss) << 10 // Linux counts kibibytes
			t.Logf("%d MiB of memory, %v of processor time", resident>>20, run.ProcessState.UserTime()+run.ProcessState.SystemTime())
			if resident > residentMax {
				t.Errorf("%d MiB of memory (limit %d)", resident>>20, residentMax>>20)
			}
		})
	}
}
