package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// The rules about clocks.

// checkWallClock refuses to measure with the clock of the day in what serves and calls: it
// can be set while the process runs, by hours, and whatever counts from 1970 then ends at
// once or never. What the clock of a process says besides (time.Since, Sub, Before) goes on
// evenly. time.Unix of two numbers is a moment that has passed, and not measured.
func checkWallClock(t *tree) []finding {
	var findings []finding
	for _, file := range t.goFiles {
		if file.test || file.module != "." || !measures(file.folder) {
			continue
		}
		eachFunction(file, func(name string, body ast.Node) {
			ast.Inspect(body, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok {
					return true
				}
				if text := file.wallClock(call); text != "" {
					findings = append(findings, finding{
						file: file.path, line: file.position(call.Pos()), what: name,
						message: fmt.Sprintf("%s reads the clock of the day (%s), which can be set: count from a time.Time that was taken before", name, text),
					})
				}
				return true
			})
		})
	}
	return findings
}

// measures tells whether a folder has code that serves or calls.
func measures(folder string) bool {
	return folder == "." || slices.Contains([]string{"eventloop", "cluster", "policy", "observe", "internal/transport", "internal/workers", "internal/peerlog"}, folder)
}

// wallClock returns which function a call reads the clock of the day with, "" if none.
func (f *goFile) wallClock(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	switch {
	case !ok:
		return ""
	case f.selects(selector, "time", "Unix", "UnixMilli", "UnixMicro"):
		if !slices.ContainsFunc(call.Args, func(argument ast.Expr) bool { _, literal := argument.(*ast.BasicLit); return !literal }) {
			return ""
		}
		return "time." + selector.Sel.Name
	case len(call.Args) == 0 && slices.Contains([]string{"Unix", "UnixMilli", "UnixMicro", "UnixNano"}, selector.Sel.Name):
		return selector.Sel.Name
	}
	return ""
}

// The rule about waiting in tests.

// checkSleep refuses to wait for the clock in tests: the wait is either too
// short on a busy machine or a waste of everybody's time. Inside a synctest
// bubble it moves the bubble's clock and costs nothing, so there it is right.
// What bounds a wait for something that must happen may use a clock too, but
// in few places, which are listed in exceptions.go.
//
// A function that makes a bubble, by itself or through a helper of its package,
// is trusted with its function literals: they are the bubble's content, or
// handlers that run in it. A helper is trusted if it is used from such places
// only.
func checkSleep(t *tree) []finding {
	trust := findBubbles(t)
	var findings []finding
	for _, file := range t.goFiles {
		if !file.test && file.folder != "internal/testkit" {
			continue
		}
		eachFunction(file, func(name string, body ast.Node) {
			eachDistrusted(trust, file, name, body, func(node ast.Node) {
				if selector, ok := node.(*ast.SelectorExpr); ok && file.waits(selector) {
					findings = append(findings, finding{
						file: file.path, line: file.position(node.Pos()), what: name,
						message: fmt.Sprintf("%s waits for the clock (time.%s): wait for what must happen, or run it inside synctest.Test", name, selector.Sel.Name),
					})
				}
			})
		})
	}
	return findings
}

// waits tells whether a selector is one of the functions of package time that
// let time pass.
func (f *goFile) waits(selector *ast.SelectorExpr) bool {
	return f.selects(selector, "time", "Sleep", "After", "AfterFunc", "NewTimer", "Tick", "NewTicker")
}

// bubbles knows the functions in tests that have to do with synctest, as
// "folder function".
type bubbles struct {
	makers map[string]bool // call synctest.Test themselves
	inside map[string]bool // are used in bubbles only
}

func findBubbles(t *tree) bubbles {
	b := bubbles{makers: map[string]bool{}, inside: map[string]bool{}}
	declared := map[string]bool{}
	eachTestFunction(t, func(file *goFile, name string, body ast.Node) {
		declared[functionKey(file, name)] = true
		if makesBubble(file, body, nil) {
			b.makers[functionKey(file, name)] = true
		}
	})
	// A helper of a helper is found in the round after it, so the rounds end
	// when one finds nothing.
	for grown := true; grown; {
		grown = false
		inside, outside := map[string]bool{}, map[string]bool{}
		eachTestFunction(t, func(file *goFile, name string, body ast.Node) {
			b.countUses(file, name, body, inside, outside)
		})
		for key := range inside {
			if declared[key] && !outside[key] && !b.inside[key] {
				b.inside[key], grown = true, true
			}
		}
	}
	return b
}

// countUses notes which names a function uses inside of bubbles and which
// outside. A method counts by its name alone: any use of that name outside a
// bubble might be one of it.
func (b bubbles) countUses(file *goFile, name string, body ast.Node, inside, outside map[string]bool) {
	distrusted := map[*ast.Ident]bool{}
	eachDistrusted(b, file, name, body, func(node ast.Node) {
		if identifier, ok := node.(*ast.Ident); ok {
			distrusted[identifier] = true
		}
	})
	own := functionKey(file, name)
	ast.Inspect(body, func(node ast.Node) bool {
		identifier, ok := node.(*ast.Ident)
		if !ok {
			return true
		}
		// A function's own name is its declaration, or a call of itself.
		if key := functionKey(file, identifier.Name); key != own && distrusted[identifier] {
			outside[key] = true
		} else if key != own {
			inside[key] = true
		}
		return true
	})
}

// eachDistrusted visits the nodes of a function that may run outside bubbles.
func eachDistrusted(b bubbles, file *goFile, name string, body ast.Node, visit func(ast.Node)) {
	if b.inside[functionKey(file, name)] {
		return
	}
	trusted := makesBubble(file, body, b.makers)
	contents := map[ast.Node]bool{} // functions with a name that bubbles are made of
	ast.Inspect(body, func(node ast.Node) bool {
		if _, ok := node.(*ast.FuncLit); ok && trusted || contents[node] {
			return false
		}
		if call, ok := node.(*ast.CallExpr); ok && isBubble(file, call, b.makers) {
			for _, argument := range call.Args {
				switch argument.(type) {
				case *ast.Ident, *ast.SelectorExpr:
					contents[argument] = true
				}
			}
		}
		if node != nil {
			visit(node)
		}
		return true
	})
}

func makesBubble(file *goFile, body ast.Node, helpers map[string]bool) bool {
	found := false
	ast.Inspect(body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			found = found || isBubble(file, call, helpers)
		}
		return !found
	})
	return found
}

func isBubble(file *goFile, call *ast.CallExpr, helpers map[string]bool) bool {
	helper, ok := call.Fun.(*ast.Ident)
	return file.selects(call.Fun, "testing/synctest", "Test") || ok && helpers[functionKey(file, helper.Name)]
}

func eachTestFunction(t *tree, visit func(file *goFile, name string, body ast.Node)) {
	for _, file := range t.goFiles {
		if file.test {
			eachFunction(file, func(name string, body ast.Node) { visit(file, name, body) })
		}
	}
}

// functionKey names a function or method of a folder's tests.
func functionKey(file *goFile, name string) string {
	return file.folder + " " + name[strings.LastIndexByte(name, '.')+1:]
}
