package archtest

import "testing"

const someExceptionTypes = "const (\n\tExceptionBadSequenceID ExceptionType = 4\n\tExceptionUnknown       ExceptionType = 0\n)\n"

func TestExceptionCodes_ArePrinted(t *testing.T) {
	types, err := exceptionTypes(someExceptionTypes)
	if err != nil {
		t.Fatal(err)
	}
	codes := func(literal string) []*goFile {
		return mustLoad(t, sources{"code.go": "var exceptionCodes = map[T]Code{" + literal + "}"}.tree()).goFiles
	}
	got, err := printExceptionCodes(types, codes("w.ExceptionBadSequenceID: Internal"))
	want := "\n| type | name | code |\n|---|---|---|\n| 0 | unknown | Unknown |\n| 4 | bad sequence id | Internal |\n| any other | | Unknown |\n\n"
	if got != want || err != nil {
		t.Errorf("printed %q, %v; want %q", got, err, want)
	}
	for _, literal := range []string{"", "w.ExceptionGone: Internal"} {
		if got, err := printExceptionCodes(types, codes(literal)); err == nil {
			t.Errorf("{%s} printed as %q", literal, got)
		}
	}
	if types, err := exceptionTypes("const Other = 1"); err == nil {
		t.Errorf("found the exception types %v where there are none", types)
	}
}

func TestCodeExceptions_ArePrinted(t *testing.T) {
	types, err := exceptionTypes(someExceptionTypes)
	if err != nil {
		t.Fatal(err)
	}
	cases := func(clauses string) []*goFile {
		return mustLoad(t, sources{"code.go": "func exceptionOfCode(c Code) T { switch c {\n" + clauses + "\n} }"}.tree()).goFiles
	}
	got, err := printCodeExceptions(types, cases("case Aborted, DataLoss: return w.ExceptionBadSequenceID\ndefault: return w.ExceptionUnknown"))
	want := "\n| code | type |\n|---|---|\n| Aborted, DataLoss | 4 bad sequence id |\n| every other | 0 unknown |\n\n"
	if got != want || err != nil {
		t.Errorf("printed %q, %v; want %q", got, err, want)
	}
	for _, clauses := range []string{"", "case A: return w.ExceptionGone\ndefault: return w.ExceptionUnknown", "case A: log()\ndefault: return w.ExceptionUnknown"} {
		if got, err := printCodeExceptions(types, cases(clauses)); err == nil {
			t.Errorf("{%s} printed as %q", clauses, got)
		}
	}
}
