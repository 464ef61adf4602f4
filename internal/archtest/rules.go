package archtest

import (
	"fmt"
	"io/fs"
)

// rule is one thing that the tree keeps.
type rule struct {
	name  string
	check func(*tree) []finding
}

// rules lists every rule. Each has a case in TestRules_FailWhenBroken.
func rules() []rule {
	return []rule{
		{"layer table", checkPlaces},
		{"imports", checkImports},
		{"requirements", checkRequirements},
		{"init", checkInit},
		{"package variable", checkVariables},
		{"variable write", checkVariableWrites},
		{"sleep", checkSleep},
		{"clock of the day", checkWallClock},
		{"print", checkPrint},
		{"exit", checkExit},
		{"panic", checkPanic},
		{"goroutine", checkGoroutines},
		{"unsafe", checkUnsafe},
		{"size", checkSizes},
		{"comment", checkComments},
		{"words", checkWords},
		{"unused limit", checkLimitsUsed},
		{"quoted limit", checkQuotes},
		{"link", checkLinks},
		{"mention", checkMentions},
		{"answer", checkAnswers},
		{"snippet", checkSnippets},
		{"record", checkRecords},
		{"fuzzing", checkFuzzing},
		{"test name", checkTestNames},
		{"leak check", checkLeakChecks},
	}
}

// exception lifts one rule in one place.
type exception struct {
	rule string
	file string
	// what names the thing as findings do: a variable, a function, an import.
	what string
	// max is the size up to which a "size" exception holds.
	max    int
	reason string
}

func (e exception) covers(f finding) bool {
	return e.rule == f.rule && e.file == f.file && e.what == f.what && (e.max == 0 || f.size <= e.max)
}

// judge returns what all rules find in fsys, less the exceptions, plus the
// exceptions that lack a reason or are no longer needed: the list only
// shrinks on its own.
func judge(fsys fs.FS, exceptions []exception) ([]finding, error) {
	t, findings, err := loadTree(fsys)
	if err != nil {
		return nil, err
	}
	used := make([]bool, len(exceptions))
	for _, r := range rules() {
		for _, f := range r.check(t) {
			f.rule = r.name
			excused := false
			for i, e := range exceptions {
				if e.covers(f) {
					used[i], excused = true, true
				}
			}
			if !excused {
				findings = append(findings, f)
			}
		}
	}
	for i, e := range exceptions {
		f := finding{rule: "exceptions", file: "internal/archtest/exceptions.go", line: 1, what: e.what}
		if e.reason == "" {
			f.message = fmt.Sprintf("the exception %q for %s in %s has no reason", e.rule, e.what, e.file)
			findings = append(findings, f)
		}
		if !used[i] {
			f.message = fmt.Sprintf("the exception %q for %s in %s is not needed any more: remove it", e.rule, e.what, e.file)
			findings = append(findings, f)
		}
	}
	sortFindings(findings)
	return findings, nil
}
