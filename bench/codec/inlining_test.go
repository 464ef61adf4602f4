package codec

import "testing"

func TestCountInlining_CountsWhatIsInTheFolder(t *testing.T) {
	const printed = `# example.com/module/gen/messages
gen/messages/a.go:10:6: can inline NewTiny with cost 5 as: func() *Tiny { return &Tiny{} }
gen/messages/a.go:12:6: can inline (*Part).GetNumber with cost 10 as: method(*Part) func() int64 { return 0 }
gen/messages/b.go:50:6: cannot inline (*Tiny).ReadThrift: function too complex: cost 400 exceeds budget 80
gen/messages/b.go:60:6: cannot inline (*Tiny).Check: unhandled op DEFER
gen/messages/b.go:61:20: inlining call to NewTiny
../thrift/reader.go:330:6: cannot inline thrift.MakeSlice[go.shape.int64]: function too complex: cost 90 exceeds budget 80
../thrift/reader.go:340:6: can inline thrift.Key with cost 4 as: func() {}
`
	if can, complex := countInlining([]byte(printed), "gen/messages"); can != 2 || complex != 1 {
		t.Errorf("%d can be inlined and %d are too complex, want 2 and 1", can, complex)
	}
}

func TestInlining_TellsWhichProgramDidNotBuild(t *testing.T) {
	if notes, err := inlining(t.Context(), t.TempDir()); err == nil {
		t.Errorf("%q of a folder without modules", notes)
	}
}
