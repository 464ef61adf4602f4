package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// beforeMark stands behind the name of a contestant that is built from another tree.
const beforeMark = "@before"

// Before returns the suite in which contestants of ours meet themselves, as built from the tree
// at root, and nobody else. It is for changes of which the effect is smaller than what a machine
// changes by itself between two runs: both builds take turns within one.
func (s Suite) Before(root string) (Suite, error) {
	if _, err := os.Stat(filepath.Join(root, "bench", "go.mod")); err != nil {
		return Suite{}, fmt.Errorf("%s is not the root of a tree of this repository: %w", root, err)
	}
	before := s
	// Second names are for comparisons with peers.
	before.Programs, before.Cases, before.AlsoAs = nil, slices.Clone(s.Cases), nil
	var ours []string
	for i, c := range s.Cases {
		before.Cases[i].Pairs = againstBefore(c.Pairs)
		before.Cases[i].Quick = againstBefore(c.Quick)
		before.Cases[i].Published = nil
		for _, pair := range before.Cases[i].Pairs {
			ours = append(ours, pair.Ours)
		}
	}
	for _, program := range s.Programs {
		program.Contestants = slices.DeleteFunc(slices.Clone(program.Contestants), func(name string) bool {
			return !slices.Contains(ours, name)
		})
		if len(program.Contestants) == 0 {
			continue
		}
		before.Programs = append(before.Programs, program)
		program.Root = root
		before.Programs = append(before.Programs, program)
	}
	return before, nil
}

// againstBefore are the comparisons of each contestant that is ours in some pair with itself.
func againstBefore(pairs []Pair) []Pair {
	var found []Pair
	for _, pair := range pairs {
		itself := Pair{Ours: pair.Ours, Peer: pair.Ours + beforeMark}
		if !slices.Contains(found, itself) {
			found = append(found, itself)
		}
	}
	return found
}

// name is what results call a contestant of the program.
func (p Program) name(contestant string) string {
	if p.Root != "" {
		return contestant + beforeMark
	}
	return contestant
}

// unmarked is what the program of a contestant calls it, and whether it is built from another tree.
func unmarked(contestant string) (name string, before bool) {
	return strings.CutSuffix(contestant, beforeMark)
}
