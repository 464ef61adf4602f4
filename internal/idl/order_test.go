package idl_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// Everything may be used before it is declared, so that the same declarations
// in any order mean the same.
func TestLoad_OrderOfDeclarationsDoesNotMatter(t *testing.T) {
	declarations := []string{
		`typedef list<B> A`,
		`typedef map<string, C> B`,
		`typedef D C`,
		`typedef i64 D`,
		`const A VALUES = [ONE, {"two": TWO}, {}]`,
		`const B ONE = {"one": FIRST}`,
		`const D TWO = Kind.SECOND`,
		`const i32 FIRST = 1`,
		`const Pair PAIR = {"kind": Kind.FIRST, "values": VALUES}`,
		`enum Kind { FIRST = 1, SECOND }`,
		`struct Pair { 1: required Kind kind = 2, 2: optional A values = VALUES, 3: Tree tree }`,
		`struct Tree { 1: optional list<Tree> children = [{"name": "x"}], 2: string name = NAME, 3: Tree parent }`,
		`const string NAME = "tree"`,
		`union Choice { 1: Pair pair, 2: Choice choice }`,
		`exception Problem { 1: Choice choice = {"pair": PAIR} }`,
		`service Child extends Parent { Tree get(1: A a = VALUES) throws (1: P problem) }`,
		`service Parent extends GrandParent { oneway void tell(1: Kind kind = KIND) }`,
		`service GrandParent { void ping() }`,
		`const Kind KIND = TWO_AGAIN`,
		`const i32 TWO_AGAIN = Kind.SECOND`,
		`typedef Problem P`,
	}
	want := meaning(t, declarations)
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		random.Shuffle(len(declarations), func(i, j int) {
			declarations[i], declarations[j] = declarations[j], declarations[i]
		})
		if got := meaning(t, declarations); got != want {
			t.Fatalf("%s\nmeans\n%s\nbut in another order\n%s", strings.Join(declarations, "\n"), got, want)
		}
	}
}

var position = regexp.MustCompile(` main\.thrift:\d+:\d+`)

// meaning loads declarations and returns what does not depend on their order.
func meaning(t *testing.T, declarations []string) string {
	t.Helper()
	program, diagnostics := idl.Load(idl.Options{
		Files:      []string{"main.thrift"},
		FileSystem: idl.Memory{"main.thrift": strings.Join(declarations, "\n")},
	})
	if program == nil {
		t.Fatal(diagnostics)
	}
	d := &dumper{}
	d.program(program)
	text := position.ReplaceAllString(d.String(), "")
	// What is indented more belongs to the line above it.
	parts := strings.Split(strings.ReplaceAll(text, "\n    ", "\r"), "\n")
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}
