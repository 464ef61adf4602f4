package idl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// ids returns the ids of fields.
func ids(fields []*schema.Field) []int16 {
	var list []int16
	for _, field := range fields {
		list = append(list, field.ID)
	}
	return list
}

// TestLoad_NumbersFieldsAsOtherCompilersDo has the numbers that thriftgo 0.4.5
// printed for these fields, and those that follow from Apache's grammar: a
// counter that begins at -1 in every list of fields, goes down with each field
// without an id, and goes on below an id that is not positive.
func TestLoad_NumbersFieldsAsOtherCompilersDo(t *testing.T) {
	const text = `struct S { i32 a, 5: i32 b, i32 c, -3: i32 d, i32 e }
union U { i32 a, string b }
exception X { string m }
service V { void m(i32 a, i32 b) throws (X x, 7: X y, X z) }`
	for choice, want := range map[idl.ImplicitIDs]string{
		idl.ImplicitIDsApache:   "[-1 5 -2 -3 -4] [-1 -2] [-1] [-1 -2] [-1 7 -2]",
		idl.ImplicitIDsThriftgo: "[1 5 6 -3 -2] [1 2] [1] [1 2] [1 7 8]",
	} {
		program, diagnostics := idl.Load(idl.Options{
			Files: []string{"a.thrift"}, FileSystem: idl.Memory{"a.thrift": text}, ImplicitIDs: choice, AllowNegativeIDs: true,
		})
		if program == nil {
			t.Errorf("%d: %s", choice, diagnostics)
			continue
		}
		file := program.Files[0]
		method := file.Services[0].Methods[0]
		var got []string
		for _, s := range file.Structs {
			got = append(got, fmt.Sprint(ids(s.Fields)))
		}
		got = append(got, fmt.Sprint(ids(method.Arguments)), fmt.Sprint(ids(method.Throws)))
		if strings.Join(got, " ") != want {
			t.Errorf("%d: ids %v, want %s", choice, got, want)
		}
		if warnings := strings.Count(diagnostics.String(), ": warning: "); warnings != 5 {
			t.Errorf("%d: %d warnings, want one for each list of fields\n%s", choice, warnings, diagnostics)
		}
	}
}

// TestLoad_ImplicitIDsNeedNoNegativeOnes has no id that somebody wrote, so the
// flag for those is not needed; a list of many fields is not shown as a whole.
func TestLoad_ImplicitIDsNeedNoNegativeOnes(t *testing.T) {
	text := "struct S { i32 a, i32 b, i32 c, i32 d, i32 e, i32 f, i32 g }"
	program, diagnostics := idl.Load(idl.Options{
		Files: []string{"a.thrift"}, FileSystem: idl.Memory{"a.thrift": text}, ImplicitIDs: idl.ImplicitIDsApache,
	})
	if program == nil || !slices.Equal(ids(program.Files[0].Structs[0].Fields), []int16{-1, -2, -3, -4, -5, -6, -7}) {
		t.Fatal(diagnostics)
	}
	const want = "a.thrift:1:16: warning: struct S: fields without an id are numbered (-1: a, -2: b, -3: c, -4: d, -5: e, 2 more); write the ids down, because the next change could move them\n"
	if got := diagnostics.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
