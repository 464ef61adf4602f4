package syntax_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/idl/syntax"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// parse reads a source with a fresh budget and checks what holds for every
// result.
func parse(t testing.TB, source string) (file *ast.File, errors []syntax.Problem) {
	t.Helper()
	nodes := limits.IDLNodes
	file, problems := syntax.Parse(source, &nodes)
	lines := strings.Split(source, "\n")
	warnings := 0
	for _, problem := range problems {
		line, column := int(problem.Place.Line), int(problem.Place.Column)
		if line < 1 || line > len(lines) || column < 1 || column > len(lines[line-1])+1 {
			t.Errorf("%d:%d is outside of the source: %s", line, column, problem.Message)
		}
		if problem.Warning {
			warnings++
		} else {
			errors = append(errors, problem)
		}
	}
	if len(errors) == 0 && hasGaps(file) {
		t.Errorf("nothing is wrong, but something could not be read: %+v", file.Gaps)
	}
	if warnings > limits.IDLErrors || len(errors) > limits.IDLErrors+1 {
		t.Errorf("%d warnings and %d errors are too many", warnings, len(errors))
	}
	return file, errors
}

// hasGaps says that the parser has left something out.
func hasGaps(file *ast.File) bool {
	partial := func(d ast.Declaration) bool { return d.Declared().Partial }
	return file.Gaps.Names != nil || file.Gaps.Headers || file.Gaps.Anything || slices.ContainsFunc(file.Declarations, partial)
}

// Trees are written in many ways and must come back the same.
func TestParse_ReadsWhatWasWritten(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		tree := generator{random}.file()
		want := canonical(tree)
		source := noisy(tree, random)
		file, errors := parse(t, source)
		if len(errors) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed, errors, source)
		}
		if got := canonical(file); got != want {
			t.Fatalf("seed %d: read\n%s\nwrote\n%s\nas\n%s", seed, got, want, source)
		}
	}
}

// sample is a definition that uses the whole grammar.
func sample(t testing.TB) string {
	t.Helper()
	archive, err := os.ReadFile("../testdata/schema/everything.thrift")
	if err != nil {
		t.Fatal(err)
	}
	_, source, _ := strings.Cut(string(archive), "-- everything.thrift --\n")
	source, _, _ = strings.Cut(source, "-- ")
	return source
}

func TestParse_EndsForEveryBeginning(t *testing.T) {
	source := sample(t)
	for length := range len(source) {
		parse(t, source[:length])
	}
}

var tokens = regexp.MustCompile(`/\*(?s:.*?)\*/|//.*|#.*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.+-]+|\S`)

// Each token is left out, and each is replaced by every kind of token. What
// follows from one mistake must stay small.
func TestParse_OneMistakeCausesFewErrors(t *testing.T) {
	source := sample(t)
	if _, errors := parse(t, source); len(errors) > 0 {
		t.Fatal(errors)
	}
	worst := 0
	for _, replacement := range []string{"", "}", ")", "]", "{", "(", "[", "<", ">", ",", ":", "=", "5", "1.5", "'x'", "name", "struct", "@"} {
		total, count := 0, 0
		for _, at := range tokens.FindAllStringIndex(source, -1) {
			changed := source[:at[0]] + replacement + source[at[1]:]
			_, errors := parse(t, changed)
			count++
			total += len(errors)
			if len(errors) > worst {
				worst = len(errors)
				line := strings.Count(source[:at[0]], "\n") + 1
				t.Logf("%d errors: %q instead of %q in line %d: %v", worst, replacement, source[at[0]:at[1]], line, errors)
			}
		}
		if mean := float64(total) / float64(count); mean > 1.4 {
			t.Errorf("%q: %.2f errors for each mistake", replacement, mean)
		}
	}
	if worst > 4 {
		t.Errorf("%d errors from one mistake", worst)
	}
}

func TestParse_SharesOneBudgetOfNodes(t *testing.T) {
	nodes := 10
	_, problems := syntax.Parse("struct A { 1: i32 a }", &nodes)
	if len(problems) > 0 || nodes != 7 {
		t.Fatalf("%d nodes are left, expected 7 after a struct, a field and a type: %v", nodes, problems)
	}
	_, problems = syntax.Parse("const list<i32> A = [1, 2, 3, 4, 5, 6]\nstruct B {", &nodes)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "limit") {
		t.Errorf("expected one error about the limit, got %v", problems)
	}
	_, problems = syntax.Parse("struct C {}", &nodes)
	if len(problems) > 0 {
		t.Errorf("expected one error in all, got a second one: %v", problems)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample(f))
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 2))
		f.Add(noisy(generator{random}.file(), random))
	}
	f.Fuzz(func(t *testing.T, source string) {
		file, errors := parse(t, source)
		if len(errors) > 0 {
			return
		}
		want := canonical(file)
		again, errors := parse(t, want)
		if len(errors) > 0 {
			t.Fatalf("%v\n%s", errors, want)
		}
		if got := canonical(again); got != want {
			t.Fatalf("read\n%s\nwrote\n%s", got, want)
		}
	})
}
