// Package rpctest tests what each contestant of suite rpc writes by itself: the
// comparison of a reply with its request. A comparison that forgets a field
// would let a contestant win by losing data.
package rpctest

import (
	"maps"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

// CheckEqual calls equal, which turns data into the contestant's own struct and
// compares that with want, with data that is the same and with data that
// differs in one place.
func CheckEqual(t testing.TB, equal func(data, want *rpc.Complex) bool) {
	t.Helper()
	original := rpc.NewComplexes(0)[0]
	if !equal(original, original) {
		t.Error("data differs from itself")
	}
	changes := map[string]func(*rpc.Complex){
		"action":             func(c *rpc.Complex) { c.Action += "x" },
		"text":               func(c *rpc.Complex) { c.Msg = c.Msg[1:] },
		"last part's number": func(c *rpc.Complex) { c.Parts[len(c.Parts)-1].Number++ },
		"last part's text":   func(c *rpc.Complex) { c.Parts[len(c.Parts)-1].Value += "x" },
		"a part less":        func(c *rpc.Complex) { c.Parts = c.Parts[1:] },
		"no parts":           func(c *rpc.Complex) { c.Parts = nil },
		"a name less":        func(c *rpc.Complex) { delete(c.ByName, "name0") },
		"another name":       func(c *rpc.Complex) { c.ByName["other"] = c.ByName["name0"]; delete(c.ByName, "name0") },
		"a name's number":    func(c *rpc.Complex) { c.ByName["name1"] = rpc.Part{Number: 1, Value: c.ByName["name1"].Value} },
		"a name's text":      func(c *rpc.Complex) { c.ByName["name1"] = rpc.Part{Number: c.ByName["name1"].Number} },
		"a group less":       func(c *rpc.Complex) { c.Groups = nil },
		"group's number":     func(c *rpc.Complex) { c.Groups[0].Number++ },
		"group's text":       func(c *rpc.Complex) { c.Groups[0].Value = "" },
		"group's parts":      func(c *rpc.Complex) { c.Groups[0].Parts = c.Groups[0].Parts[1:] },
		"group's part":       func(c *rpc.Complex) { c.Groups[0].Parts[1].Number++ },
		"flag's number":      func(c *rpc.Complex) { c.Flag.Number++ },
		"flag's text":        func(c *rpc.Complex) { c.Flag.Value += "x" },
		"flag's part":        func(c *rpc.Complex) { c.Flag.Parts[0].Value = "" },
	}
	for name, change := range changes {
		changed := clone(original)
		change(changed)
		if equal(changed, original) {
			t.Errorf("%s: a reply that differs is taken for the request", name)
		}
	}
}

// clone copies everything that a change may touch.
func clone(c *rpc.Complex) *rpc.Complex {
	made := *c
	made.ByName = maps.Clone(c.ByName)
	made.Parts = slices.Clone(c.Parts)
	made.Groups = slices.Clone(c.Groups)
	for i := range made.Groups {
		made.Groups[i].Parts = slices.Clone(c.Groups[i].Parts)
	}
	made.Flag.Parts = slices.Clone(c.Flag.Parts)
	return &made
}
