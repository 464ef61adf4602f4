package archtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sources is a small tree: path to content. A Go file may leave out its
// package clause.
type sources map[string]string

func (s sources) tree() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range s {
		if strings.HasSuffix(name, ".go") && !strings.Contains(content, "package ") {
			content = "package p\n" + content
		}
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// brokenCase breaks one rule on purpose.
type brokenCase struct {
	rule    string
	name    string
	sources sources
	// want is a part of the message; "" means that nothing is found.
	want string
}

// TestRules_FailWhenBroken gives each rule trees that break it, and trees that
// come close and do not.
func TestRules_FailWhenBroken(t *testing.T) {
	for _, c := range brokenCases() {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			findings, err := judge(c.sources.tree(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var messages []string
			for _, f := range findings {
				if f.rule == c.rule {
					messages = append(messages, f.String())
				}
			}
			switch {
			case c.want == "" && len(messages) > 0:
				t.Errorf("found %q, want nothing", messages)
			case c.want != "" && !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, c.want) }):
				t.Errorf("found %q, want a message with %q", messages, c.want)
			}
		})
	}
}

func TestRules_EachIsBrokenOnPurpose(t *testing.T) {
	broken := map[string]bool{}
	for _, c := range brokenCases() {
		broken[c.rule] = broken[c.rule] || c.want != ""
	}
	for _, r := range rules() {
		if !broken[r.name] {
			t.Errorf("no test breaks the rule %q", r.name)
		}
	}
}

func brokenCases() []brokenCase {
	return slices.Concat(layerCases(), moduleCases(), constructCases(), sleepCases(), wallClockCases(), endCases(), goroutineCases(), textCases(), documentCases(), testCases())
}

func layerCases() []brokenCase {
	edge := func(from, to string) sources {
		return sources{from: fmt.Sprintf("import _ %q", to)}
	}
	self := modulePath
	return []brokenCase{
		{"layer table", "unknown package", sources{"internal/utils/u.go": ""}, "package internal/utils is not in the layer table"},
		{"layer table", "known packages", sources{"server.go": "", "internal/wire/framed/f.go": ""}, ""},
		{"imports", "up", edge("internal/linkbuf/b.go", self+"/eventloop"), "imports point down, but this goes up from line 1 to line 2"},
		{"imports", "up to the root", edge("internal/transport/t.go", self), "goes up from line 3 to line 4"},
		{"imports", "same line", edge("eventloop/e.go", self+"/thrift"), "packages of one line do not import each other"},
		{"imports", "down", edge("internal/transport/t.go", self+"/eventloop"), ""},
		{"imports", "own subtree", edge("internal/wire/framed/f.go", self+"/internal/wire"), ""},
		{"imports", "unknown target", edge("server.go", self+"/internal/utils"), "not in the layer table"},
		{"imports", "edge is named", edge("eventloop/e.go", self), "edge github.com/fulmar-rpc/fulmar/eventloop -> github.com/fulmar-rpc/fulmar:"},
		{"imports", "limits from anywhere", edge("internal/idl/i.go", self+"/internal/limits"), ""},
		{"imports", "generator to runtime", edge("internal/emit/e.go", self+"/thrift"), "share no packages"},
		{"imports", "runtime to generator", edge("server.go", self+"/gen/schema"), "share no packages"},
		{"imports", "generator down", edge("internal/emit/e.go", self+"/internal/idl"), ""},
		{"imports", "command as user", edge("cmd/fulmar/call.go", self), ""},
		{"imports", "generator's test as user", edge("internal/emit/e_test.go", self+"/thrift"), ""},
		{"imports", "generator's test to engine", edge("internal/emit/e_test.go", self+"/internal/transport"), "share no packages"},
		{"imports", "command to engine", edge("cmd/fulmar/call.go", self+"/internal/transport"), "share no packages"},
		{"imports", "root without codecs", edge("server.go", self+"/thrift"), "must do without github.com/fulmar-rpc/fulmar/thrift"},
		{"imports", "wire without clock", edge("internal/wire/w.go", "time"), "the only packages that internal/wire/... may import are"},
		{"imports", "wire without net below", edge("internal/wire/framed/f.go", "net/http"), "may import are"},
		{"imports", "wire without log", edge("internal/wire/w.go", "log/slog"), "may import are"},
		{"imports", "wire without locks", edge("internal/wire/w.go", "sync/atomic"), "may import are"},
		{"imports", "thriftwire without scheduler", edge("internal/thriftwire/w.go", "runtime"), "may import are"},
		{"imports", "thriftwire with text", edge("internal/thriftwire/w.go", "strings"), ""},
		{"imports", "codec without net", edge("thrift/w.go", "net/http"), "must do without net"},
		{"imports", "wire tests may", edge("internal/wire/w_test.go", "time"), ""},
		{"imports", "helper in code", edge("server.go", self+"/internal/testkit"), "imported by tests only"},
		{"imports", "helper in test", edge("server_test.go", self+"/internal/testkit"), ""},
		{"imports", "helper climbing", edge("internal/testkit/t.go", self+"/eventloop"), "imports only internal/assert"},
		{"imports", "test of neighbours", edge("eventloop/e_test.go", self+"/internal/simnet"), ""},
		{"imports", "test going up", edge("eventloop/e_test.go", self), "goes up"},
		{"imports", "example inside", edge("examples/orders/m.go", self+"/internal/transport"), "uses the public packages only"},
		{"imports", "example outside", edge("examples/orders/m.go", self+"/thrift"), ""},
		{"imports", "example as library", edge("server.go", self+"/examples/orders"), "nested modules are not imported"},
		{"imports", "framings compared", edge("test/wire/x_test.go", self+"/internal/wire/framed"), ""},
		{"imports", "framings in code", edge("test/wire/doc.go", self+"/internal/wire/framed"), "uses the public packages only"},
		{"imports", "framings elsewhere", edge("test/interop/calls/x_test.go", self+"/internal/wire/framed"), "uses the public packages only"},
		{"imports", "streams with Kitex", edge("test/kitex/proxied/x_test.go", self+"/internal/wire/ttstream"), ""},
		{"imports", "streams with Kitex, below", edge("test/kitex/proxied/x_test.go", self+"/internal/transport"), "uses the public packages only"},
		{"imports", "dot", sources{"server.go": `import . "time"`}, `import . "time": nobody, and no rule, sees`},
		{"imports", "bench may load", edge("bench/b.go", self+"/internal/loadgen"), ""},
	}
}

func moduleCases() []brokenCase {
	return []brokenCase{
		{"imports", "third party in core", sources{"server.go": `import _ "example.com/toolbox"`}, "third-party imports of . are limited to []"},
		{"imports", "third party in place", sources{"eventloop/e_linux.go": `import _ "golang.org/x/sys/unix"`}, ""},
		{"imports", "third party in tests only", sources{"eventloop/e.go": `import _ "golang.org/x/net/nettest"`}, "third-party imports of eventloop/..."},
		{"imports", "third party in a test", sources{"eventloop/e_test.go": `import _ "golang.org/x/net/nettest"`}, ""},
		{"imports", "third party prefix", sources{"eventloop/e.go": `import _ "golang.org/x/system"`}, "third-party imports"},
		{"requirements", "unknown", sources{"go.mod": "module m\nrequire example.com/toolbox v1.0.0\n"}, "not example.com/toolbox"},
		{"requirements", "in a block", sources{"go.mod": "module m\nrequire (\n\texample.com/toolbox v1.0.0\n)\n"}, "go.mod:3"},
		{"requirements", "indirect", sources{"go.mod": "module m\nrequire example.com/toolbox v1.0.0 // indirect\n"}, ""},
		{"requirements", "too many", sources{"go.mod": "module m\nrequire (\na v1\nb v1\nc v1\nd v1\ne v1\nf v1\n)\n"}, "6 direct requirements, at most 5"},
		{"requirements", "nested without replace", sources{"bench/go.mod": "module m\nrequire " + modulePath + " v0.0.0\n"}, "without a replace directive"},
		{"requirements", "nested with replace", sources{"bench/go.mod": "module m\nrequire " + modulePath + " v0.0.0\nreplace " + modulePath + " => ../\n"}, ""},
	}
}

// official looks like what Go's generator for Protobuf makes.
const official = "// Code generated by fulmar gen from x.proto. DO NOT EDIT.\n\npackage thrift\n\nimport _ \"unsafe\"\n\nvar x []byte\n\nfunc init() { x = nil }\n"

func constructCases() []brokenCase {
	code := func(content string) sources { return sources{"thrift/x.go": content} }
	test := func(content string) sources { return sources{"thrift/x_test.go": content} }
	return []brokenCase{
		{"parse", "syntax error", code("func {"), "does not parse"},
		{"init", "function", code("func init() {}"), "func init is banned"},
		{"init", "in a test", test("func init() {}"), "func init is banned"},
		{"init", "official generator", sources{"thrift/x.pb.go": official}, ""},
		{"init", "called like it", sources{"thrift/x.pb.go": "package thrift\nfunc init() {}"}, "func init is banned"},
		{"unsafe", "official generator", sources{"thrift/x.pb.go": official}, ""},
		{"variable write", "official generator", sources{"thrift/x.pb.go": official}, ""},
		{"init", "method", code("type s struct{}\nfunc (s) init() {}"), ""},
		{"package variable", "map", code("var cache = map[string]int{}"), "package variable cache"},
		{"package variable", "in a group", code("var (\n\ta = 1\n\tb int\n)"), "package variable b"},
		{"package variable", "not a sentinel", code(`var ErrMore = other.New("x")`), "package variable ErrMore"},
		{"package variable", "sentinel", code(`var ErrMore = errors.New("more")`), ""},
		{"package variable", "assertion", code("var _ I = (*T)(nil)"), ""},
		{"package variable", "assertion of a value", code("var _, _ I = T{}, new(T)\nvar _ = []I(nil)\nvar _ = func() int { return f() }"), ""},
		{"package variable", "init in disguise", code("var _ = register()"), "a func init in disguise"},
		{"package variable", "init that takes nil", code("var _ = register(nil)"), "a func init in disguise"},
		{"package variable", "init with an argument", code(`var _ = register("x")`), "a func init in disguise"},
		{"package variable", "init inside of a value", code("var _ I = T{n: (*T)(register(1))}"), "a func init in disguise"},
		{"package variable", "init in a literal that is called", code("var _ = func() int { return 1 }()"), "a func init in disguise"},
		{"package variable", "pattern", code("var name = regexp.MustCompile(`^a+$`)"), ""},
		{"package variable", "embedded", code("//go:embed a.txt\nvar text string"), ""},
		{"package variable", "local", code("func f() { var x int; _ = x }"), ""},
		{"variable write", "assignment", code("var table = [2]int{}\nfunc f() { table[0] = 1 }"), "table is written"},
		{"variable write", "from another file", sources{"thrift/a.go": "var n int", "thrift/b.go": "func f() { n++ }"}, "thrift/b.go:2"},
		{"variable write", "delete", code("var m map[int]int\nfunc f() { delete(m, 1) }"), "m is written"},
		{"variable write", "local of the same name", code("var n int\nfunc f() { n := 0; n++ }"), ""},
		{"variable write", "blank", code("var _ I = T{}\nfunc f() { _ = g() }"), ""},
		{"variable write", "read", code("var n int\nfunc f() int { return n }"), ""},
		{"panic", "function", code(`func f() { panic("x") }`), "f panics"},
		{"panic", "method literal", code(`func (s *S[K]) M() { g(func() { panic("x") }) }`), "S.M panics"},
		{"panic", "parentheses", code(`func f() { (panic)("x") }`), "f panics"},
		{"panic", "test", test(`func f() { panic("x") }`), ""},
	}
}

func wallClockCases() []brokenCase {
	at := func(file, body string) sources {
		return sources{file: "import \"time\"\nfunc measure(at time.Time, n int64) { _ = " + body + " }"}
	}
	return []brokenCase{
		{"clock of the day", "method", at("server.go", "at.UnixNano()"), "measure reads the clock of the day (UnixNano)"},
		{"clock of the day", "of now", at("eventloop/e.go", "time.Now().Unix()"), "measure reads the clock of the day (Unix)"},
		{"clock of the day", "back", at("internal/transport/t.go", "time.Unix(0, n)"), "measure reads the clock of the day (time.Unix)"},
		{"clock of the day", "the past", at("eventloop/e.go", "time.Unix(1, 0)"), ""},
		{"clock of the day", "difference", at("server.go", "time.Since(at)"), ""},
		{"clock of the day", "for people", at("internal/emit/e.go", "at.Unix()"), ""},
		{"clock of the day", "in a test", at("server_test.go", "at.Unix()"), ""},
	}
}

func sleepCases() []brokenCase {
	test := func(content string) sources { return sources{"thrift/x_test.go": content} }
	imports := func(name, content string) sources { return test("import " + name + ` "time"` + "\n" + content) }
	return []brokenCase{
		{"sleep", "test", test("func TestX(t *T) { time.Sleep(1) }"), "TestX waits for the clock (time.Sleep)"},
		{"sleep", "alias", imports("t", "func TestX() { t.Sleep(1) }"), "TestX waits for the clock (time.Sleep)"},
		{"sleep", "value", test("func TestX(t *T) { wait := time.Sleep; wait(1) }"), "TestX waits for the clock (time.Sleep)"},
		{"sleep", "package variable", test("var wait = time.Sleep"), "package level waits"},
		{"sleep", "channel", test("func TestX(t *T) { <-time.After(1) }"), "(time.After)"},
		{"sleep", "timer", test("func TestX(t *T) { <-time.NewTimer(1).C }"), "(time.NewTimer)"},
		{"sleep", "ticker", test("func TestX(t *T) { <-time.Tick(1); <-time.NewTicker(1).C }"), "(time.NewTicker)"},
		{"sleep", "later", test("func TestX(t *T) { time.AfterFunc(1, f) }"), "(time.AfterFunc)"},
		{"sleep", "other package of that name", imports("_", `import "example.com/time"`+"\nfunc TestX() { time.Sleep(1) }"), ""},
		{"sleep", "local of that name", test("func TestX(time clock) { time.Sleep(1) }"), ""},
		{"sleep", "bubble", test("func TestX(t *T) { synctest.Test(t, func(t *T) { time.Sleep(1); <-time.After(1) }) }"), ""},
		{"sleep", "bubble of an alias", test("import s \"testing/synctest\"\nfunc TestX(t *T) { s.Test(t, func(t *T) { time.Sleep(1) }) }"), ""},
		{"sleep", "bubble of a helper", test("func bubble(t *T, f func()) { synctest.Test(t, f) }\nfunc TestX(t *T) { bubble(t, func() { time.Sleep(1) }) }"), ""},
		{"sleep", "bubble of a function", test("func body(t *T) { time.Sleep(1) }\nfunc TestX(t *T) { synctest.Test(t, body) }"), ""},
		{"sleep", "argument of a bubble", test("func later() int { time.Sleep(1) }\nfunc TestX(t *T) { synctest.Test(t, body(later())) }"), "later waits"},
		{"sleep", "handler in a bubble", test("func TestX(t *T) { h := func() { time.Sleep(1) }; synctest.Test(t, func(t *T) { h() }) }"), ""},
		{"sleep", "helper in bubbles only", test("func wait() { if x { wait() }; again() }\nfunc (s *S) again() { time.Sleep(1) }\nfunc TestX(t *T) { synctest.Test(t, func(t *T) { wait() }) }"), ""},
		{"sleep", "helper in and out of bubbles", test("func wait() { time.Sleep(1) }\nfunc TestX(t *T) { synctest.Test(t, func(t *T) { wait() }) }\nfunc TestY(t *T) { wait() }"), "wait waits"},
		{"sleep", "helper that nobody uses", test("func wait() { time.Sleep(1) }"), "wait waits"},
		{"sleep", "beside a bubble", test("func TestX(t *T) { time.Sleep(1); synctest.Test(t, f) }"), "TestX waits"},
		{"sleep", "other helper", test("func run(t *T, f func()) { f() }\nfunc TestX(t *T) { run(t, func() { time.Sleep(1) }) }"), "TestX waits"},
		{"sleep", "test helper", sources{"internal/testkit/x.go": "func f() { time.Sleep(1) }"}, "f waits"},
		{"sleep", "code", sources{"thrift/x.go": "func f() { time.Sleep(1) }"}, ""},
	}
}

// endCases are about what a library does to the process that it runs in.
func endCases() []brokenCase {
	code := func(content string) sources { return sources{"thrift/x.go": content} }
	command := func(content string) sources {
		return sources{"cmd/fulmar/go.mod": "module c\n", "cmd/fulmar/main.go": content}
	}
	return []brokenCase{
		{"print", "fmt", code("func f() { fmt.Println() }"), "f prints"},
		{"print", "alias", code("import out \"fmt\"\nfunc f() { out.Printf() }"), "f prints"},
		{"print", "value", code("var p = fmt.Print"), "package level prints"},
		{"print", "builtin", code("func f() { println() }"), "f prints"},
		{"print", "standard output", code("func f() { fmt.Fprintln(os.Stdout) }"), "f prints"},
		{"print", "standard error in a variable", code("func f() { w := os.Stderr; w.WriteString(text) }"), "f prints"},
		{"print", "log", code("func f() { log.Default().Println() }"), "f prints"},
		{"print", "slog", code(`func f() { slog.Info("x") }`), "f prints"},
		{"print", "the default logger", code("func f() { logger = slog.Default() }"), ""},
		{"print", "to a writer", code("func f() { fmt.Fprintln(w) }"), ""},
		{"print", "command", command("func f() { fmt.Println() }"), ""},
		{"exit", "os", code("func f() { os.Exit(1) }"), "f ends the process"},
		{"exit", "value", code("var exit = os.Exit"), "package level ends the process"},
		{"exit", "alias", code("import l \"log\"\nfunc f() { l.Fatalf() }"), "f ends the process"},
		{"exit", "panic of a logger", code("func f() { log.Panicln() }"), "f ends the process"},
		{"exit", "goroutine", code("func f() { runtime.Goexit() }"), "f ends the process"},
		{"exit", "system call", code("func f() { syscall.Exit(1) }"), "f ends the process"},
		{"exit", "test", sources{"thrift/x_test.go": "func TestMain(m *M) { os.Exit(m.Run()) }"}, ""},
		{"exit", "main of the command", command("func main() { os.Exit(1) }"), ""},
		{"exit", "deeper in the command", command("func run() { os.Exit(1) }"), "run ends the process"},
		{"exit", "example", sources{"examples/a/go.mod": "module e\n", "examples/a/main.go": "func run() { os.Exit(1) }"}, ""},
	}
}

func goroutineCases() []brokenCase {
	code := func(content string) sources { return sources{"thrift/x.go": content} }
	return []brokenCase{
		{"goroutine", "function", code("func f() { go f() }"), "f starts a goroutine"},
		{"goroutine", "literal", code("var f = func() { go g() }"), "package level starts a goroutine"},
		{"goroutine", "wait group", code("func (s *S) f() { s.calls.Go(g) }"), "S.f starts a goroutine"},
		{"goroutine", "timer", code("func f() { time.AfterFunc(1, g) }"), "f starts a goroutine"},
		{"goroutine", "context", code("import c \"context\"\nfunc f() { c.AfterFunc(ctx, g) }"), "f starts a goroutine"},
		{"goroutine", "method of that name", code("func f() { clock.AfterFunc(1, g) }"), ""},
		{"goroutine", "test", sources{"thrift/x_test.go": "func f() { go f() }"}, ""},
		{"unsafe", "import", code(`import "unsafe"`), "imports unsafe"},
		{"unsafe", "cgo", code(`import "C"`), `import "C"`},
		{"unsafe", "cgo in a test", sources{"thrift/x_test.go": `import "C"`}, `import "C"`},
		{"unsafe", "linkname", code("//go:linkname now time.now\nfunc now()"), "go:linkname breaks"},
		{"unsafe", "clean", code(`import "time"`), ""},
	}
}

func textCases() []brokenCase {
	code := func(content string) sources { return sources{"thrift/x.go": content} }
	long := strings.Repeat("\n", fileLinesMax)
	body := "func f() {" + strings.Repeat("\n", functionLinesMax) + "}"
	marker := "FIX" + "ME"
	return []brokenCase{
		{"size", "file", code(long), "601 lines, at most 600"},
		{"size", "function", code(body), "f has 71 lines, at most 70"},
		{"size", "method", code("func (s *S) m() {" + strings.Repeat("\n", functionLinesMax) + "}"), "S.m has 71 lines"},
		{"size", "generated", code("// Code generated by x. DO NOT EDIT.\n\npackage p\n" + body), ""},
		{"size", "limit", code("func f() {" + strings.Repeat("\n", functionLinesMax-1) + "}"), ""},
		{"comment", "marker", code("// " + marker + ": later"), "must not reach the main branch"},
		{"comment", "todo", code("// TO" + "DO: later"), "names its issue"},
		{"comment", "todo with issue", code("// TO" + "DO(#12): later"), ""},
		{"comment", "dead statement", code("func f() {\n\t// x := g()\n}"), "commented-out code"},
		{"comment", "dead function", code("// func g() {\n// \treturn\n// }"), "commented-out code"},
		{"comment", "prose", code("// f returns x (or y) if n = 1.\nfunc f() {}"), ""},
		{"comment", "example", code("// Use it:\n//\n//\tx := f()\nfunc f() {}"), ""},
		{"comment", "explanation behind code", code("const n = 4 // len(header)"), ""},
		{"words", "home", sources{"docs/a.md": "see /ro" + "ot/.profile"}, "true on one machine only"},
		{"words", "work tree", sources{"Makefile": "cd /wo" + "rk/main"}, "true on one machine only"},
		{"words", "scratch", code("const x = \"/t" + "mp/x\""), "true on one machine only"},
		{"words", "registry", sources{"docs/a.md": "ask pro" + "xy.golang.org"}, "true on one machine only"},
		{"words", "relative", sources{"docs/a.md": "see bench/work/a and frame/work"}, ""},
	}
}

func documentCases() []brokenCase {
	section := "\n## Context\n\n## Decision\n\n## Refused\n\n## Consequences\n\n## What would reverse it\n"
	index := "[one](0001-one.md)"
	return []brokenCase{
		{"link", "file", sources{"README.md": "[a](docs/a.md)"}, "no such file"},
		{"link", "anchor", sources{"README.md": "[a](#two)\n# One"}, "no such heading"},
		{"link", "anchor elsewhere", sources{"README.md": "[a](docs/a.md#two)", "docs/a.md": "# One"}, "no such heading"},
		{"link", "good", sources{"README.md": "[a](docs/a.md#one-2--more)", "docs/a.md": "# One 2 & more"}, ""},
		{"link", "broken over lines", sources{"README.md": "[a\nb](docs/a.md)"}, "no such file"},
		{"link", "around an image", sources{"README.md": "[![a](https://example.com/x)](docs/a.md)"}, "link to docs/a.md: no such file"},
		{"link", "definition", sources{"README.md": "[a][b]\n\n[b]: docs/a.md"}, "README.md:3: [link] link to docs/a.md: no such file"},
		{"link", "without a definition", sources{"README.md": "[a][b]\n"}, "link to [b]: nothing in this document defines it"},
		{"link", "short without a definition", sources{"README.md": "[a][]\n"}, "link to [a]: nothing"},
		{"link", "good definition", sources{"README.md": "[a][B] [b][]\n\n[b]: #one\n# One"}, ""},
		{"link", "inside code", sources{"README.md": "`[a](b)[c][d]`\n```\n[a](c)\n```\n"}, ""},
		{"link", "other site", sources{"README.md": "[a](https://example.com/x)"}, ""},
		{"mention", "file", sources{"docs/a.md": "`internal/gone.go`"}, "mentions internal/gone.go"},
		{"mention", "in a diagram", sources{"docs/a.md": "```\nserver.go -> call.go\n```", "server.go": ""}, "mentions call.go"},
		{"mention", "pattern", sources{"docs/a.md": "see eventloop/engine_*.go"}, "mentions eventloop/engine_*.go"},
		{"mention", "good", sources{"docs/a.md": "see eventloop/engine_*.go", "eventloop/engine_std.go": ""}, ""},
		{"mention", "link text", sources{"docs/a.md": "[a.go](../eventloop/a.go)", "eventloop/a.go": ""}, ""},
		{"answer", "name is gone", sources{"ARCHITECTURE.md": "| drain | `S.drain` in [s](server.go) |", "server.go": "func stop() { drain() } // drain"}, "declares drain"},
		{"answer", "name is there", sources{"ARCHITECTURE.md": "| drain | `S.drain` in [s](server.go) |", "server.go": "func drain() {}"}, ""},
		{"answer", "field", sources{"ARCHITECTURE.md": "| drain | `S.drain` in [s](server.go) |", "server.go": "type S struct { drain int }"}, ""},
		{"answer", "prose", sources{"ARCHITECTURE.md": "`S.drain` in [s](server.go)", "server.go": ""}, ""},
		{"snippet", "not compiled", sources{"README.md": "```go\nf(1)\n```", "server.go": "func g() {\n\tf(2)\n}"}, "begins with \"f(1)\""},
		{"snippet", "across a gap", sources{"README.md": "```go\nf(1)\nf(3)\n```", "server.go": "func g() {\n\tf(1)\n\tf(2)\n\tf(3)\n}"}, "not part of a Go file"},
		{"snippet", "half a file", sources{"README.md": "```go\npackage p\nvar a = 1\n```", "server.go": "package p\nvar a = 1\nvar b = 2"}, "is not a whole file"},
		{"snippet", "half a definition", sources{"docs/guide/a.md": "```thrift\nstruct A {}\n```", "a/a.thrift": "struct A {}\nstruct B {}"}, "the Thrift code is not a whole file"},
		{"snippet", "whole files", sources{"README.md": "```thrift\nstruct A {}\n```\n```go\npackage p\n\nvar x = 1\n```", "a/a.thrift": "struct A {}\n", "server.go": "package p\nvar x = 1"}, ""},
		{"snippet", "elsewhere", sources{"docs/adr/x.md": "```go\nf(1)\n```"}, ""},
		{"snippet", "compiled", sources{"README.md": "```go\nf(1)\n\n// ...\nf(3)\n```", "server.go": "func g() {\n\tf(1)\n\tf(2)\n\tf(3)\n}"}, ""},
		{"record", "section", sources{"docs/adr/0001-one.md": "# One", "docs/adr/README.md": index}, `lacks the section "Context"`},
		{"record", "index", sources{"docs/adr/0001-one.md": section, "docs/adr/README.md": "x"}, "does not list it"},
		{"record", "name", sources{"docs/adr/one.md": section, "docs/adr/README.md": index}, "are called docs/adr/0000"},
		{"record", "number", sources{"docs/adr/0001-one.md": section, "docs/adr/0001-two.md": section, "docs/adr/README.md": index}, "taken by another record"},
		{"record", "reference", sources{"thrift/x.go": "// ADR-0099 says so.\nconst c = 1"}, "cites ADR-0099"},
		{"record", "good", sources{"docs/adr/0001-one.md": section, "docs/adr/README.md": index, "thrift/x.go": "// ADR-0001 says so.\nconst c = 1"}, ""},
	}
}

func testCases() []brokenCase {
	quoting := func(name, content string) sources {
		const limits = "import \"time\"\nconst (\n\tMessageBytes = 16 << 20\n\tDepth = 64\n\tCallTimeout = 5 * time.Second\n\tBytesPerSecond = 64 << 10\n)"
		return sources{limitsFile: limits, name: content}
	}
	fuzz := "func FuzzFrame(f *F) {}"
	main := "func TestMain(m *M) { testkit.Main(m) }"
	nested := func(folder, name, content string) sources {
		return sources{folder + "/go.mod": "module " + cmp.Or(name, importPath(folder)) + "\n", folder + "/x_test.go": content}
	}
	return []brokenCase{
		{"fuzzing", "corpus", sources{"thrift/x_test.go": fuzz, "docs/fuzzing.md": "| `FuzzFrame` | thrift | x |"}, "no committed corpus"},
		{"fuzzing", "ledger", sources{"thrift/x_test.go": fuzz, "thrift/testdata/fuzz/FuzzFrame/one": "x", "docs/fuzzing.md": "| `FuzzFrame` | other |"}, "has no line"},
		{"fuzzing", "good", sources{"thrift/x_test.go": fuzz, "thrift/testdata/fuzz/FuzzFrame/one": "x", "docs/fuzzing.md": "| `FuzzFrame` | thrift | x |"}, ""},
		{"test name", "gone", sources{"README.md": "`TestCall_Works`", "call_test.go": "func TestCall(t *T) {}"}, "names TestCall_Works"},
		{"test name", "there", sources{"README.md": "`TestCall_Works`", "call_test.go": "func TestCall_Works(t *T) {}"}, ""},
		{"test name", "package", sources{"README.md": "`testing` and `TestMain` in `testkit`", "call_test.go": main}, ""},
		{"quoted limit", "default", quoting("config.go", "// C is.\ntype C struct {\n\t// A is bounded. Default\n\t// 16 MiB.\n\tA int\n}"), "config.go:5: [quoted limit] 16 MiB is the value"},
		{"quoted limit", "function", quoting("thrift/x.go", "// F waits 5 s.\nfunc F() {}"), "5 s is the value"},
		{"quoted limit", "rate", quoting("thrift/x.go", "// V is sent at 64 KiB/s.\nvar V = 1"), "64 KiB/s is the value"},
		{"quoted limit", "document", quoting("docs/guide/x.md", "A call takes 5 seconds."), "5 s is the value"},
		{"quoted limit", "bytes one by one", quoting("docs/protocol/x.md", "a name of at most 16777216 bytes"), "16,777,216 is the value"},
		{"quoted limit", "no unit", quoting("README.md", "Default: 64"), "64 is the value"},
		{"quoted limit", "another number", quoting("README.md", "64 files, 15 MiB, 16,000 MiB, v5 s, 0.5 s, default 65"), ""},
		{"quoted limit", "named", quoting("README.md", "Default: 64 (`Depth`), 16 MiB (MessageBytes), 5 s\n(`CallTimeout`)."), ""},
		{"quoted limit", "table of limits", quoting("docs/guide/limits.md", limitsBegin+"| 16 MiB |\n"+limitsEnd+"16 MiB"), "limits.md:4"},
		{"quoted limit", "not for users", quoting("docs/adr/x.md", "Default: 64"), ""},
		{"quoted limit", "not exported", quoting("thrift/x.go", "// f waits 5 s.\nfunc f() {}"), ""},
		{"quoted limit", "internal", quoting("internal/linkbuf/x.go", "// F waits 5 s.\nfunc F() {}"), ""},
		{"unused limit", "nowhere", sources{"internal/limits/l.go": "const Depth = 64"}, "nothing uses the limit Depth"},
		{"unused limit", "in tests only", sources{"internal/limits/l.go": "const Depth = 64", "thrift/x_test.go": "const d = limits.Depth"}, "nothing uses the limit Depth"},
		{"unused limit", "elsewhere", sources{"internal/limits/l.go": "const Depth = 64", "thrift/x.go": "const d = limits.Depth"}, ""},
		{"unused limit", "in its package", sources{"internal/limits/l.go": "const Depth = 64\nfunc f() int { return Depth }"}, ""},
		{"leak check", "missing", sources{"thrift/x_test.go": "func TestX(t *T) {}"}, "the tests of thrift lack"},
		{"leak check", "in another file", sources{"thrift/x_test.go": "func TestX(t *T) {}", "thrift/main_test.go": main}, ""},
		{"leak check", "other module", sources{"cmd/fulmar/go.mod": "module c\n", "cmd/fulmar/x_test.go": "func TestMain(m *M) { os.Exit(m.Run()) }"}, "the tests of cmd/fulmar lack"},
		{"leak check", "in words only", sources{"thrift/x_test.go": "// testkit.Main(m)\nfunc TestMain(m *M) { os.Exit(m.Run()) }"}, "the tests of thrift lack"},
		{"leak check", "elsewhere", sources{"thrift/x_test.go": "func TestX(t *T) { testkit.Main(m) }"}, "the tests of thrift lack"},
		{"leak check", "two parts", sources{"thrift/x_test.go": "func TestMain(m *M) { if child() { play(); return }; testkit.Main(m) }"}, ""},
		{"leak check", "example", nested("examples/a", "", "func TestX(t *T) {}"), "examples/a lack func TestMain(m *testing.M) { testkit.Main(m) }"},
		{"leak check", "tool", nested("tools", "", "func TestX(t *T) {}"), "the tests of tools lack"},
		{"leak check", "good example", nested("examples/a", "", main), ""},
		{"leak check", "called as a user's", nested("examples/a", "example.com/shop", "func TestX(t *T) {}"), "examples/a lack func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }"},
		{"leak check", "good one called as a user's", nested("examples/a", "example.com/shop", `import "go.uber.org/goleak"`+"\nfunc TestMain(m *M) { goleak.VerifyTestMain(m) }"), ""},
		{"leak check", "less than possible", nested("examples/a", "", `import "go.uber.org/goleak"`+"\nfunc TestMain(m *M) { goleak.VerifyTestMain(m) }"), "the tests of examples/a lack"},
		{"leak check", "no tests", sources{"thrift/x.go": "func f() {}"}, ""},
	}
}

func TestExceptions_AreNeededAndExplained(t *testing.T) {
	source := sources{"thrift/x.go": "func f() { panic(1) }\nfunc g() {" + strings.Repeat("\n", 80) + "}"}
	good := []exception{
		{rule: "panic", file: "thrift/x.go", what: "f", reason: "programmer error"},
		{rule: "size", file: "thrift/x.go", what: "g", max: 90, reason: "a table"},
	}
	tests := []struct {
		name   string
		change func([]exception) []exception
		want   string
	}{
		{"all needed", func(e []exception) []exception { return e }, ""},
		{"not needed", func(e []exception) []exception {
			return append(e, exception{rule: "panic", file: "thrift/x.go", what: "h", reason: "x"})
		}, "not needed any more"},
		{"no reason", func(e []exception) []exception { e[0].reason = ""; return e }, "has no reason"},
		{"outgrown", func(e []exception) []exception { e[1].max = 75; return e }, "g has 81 lines"},
		{"other rule", func(e []exception) []exception { e[0].rule = "init"; return e }, "f panics"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			findings, err := judge(source.tree(), test.change(slices.Clone(good)))
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(findings)
			if test.want == "" && len(findings) > 0 || !strings.Contains(text, test.want) {
				t.Errorf("found %v, want %q", findings, test.want)
			}
		})
	}
}

func TestTree_IgnoresWhatGitIgnores(t *testing.T) {
	bad := "package p\nfunc init() {}"
	source := sources{
		".gitignore":            "# built\n/bin/\n/examples/*/gen/\n__pycache__/\n",
		"bin/x.go":              bad,
		"examples/a/gen/x.go":   bad,
		"test/__pycache__/x.go": bad,
		"thrift/testdata/x.go":  bad,
	}
	findings, err := judge(source.tree(), nil)
	if err != nil || len(findings) > 0 {
		t.Errorf("found %v, %v; want nothing", findings, err)
	}
	if _, err := judge(sources{".gitignore": "!keep\n"}.tree(), nil); err == nil {
		t.Error("a pattern that archtest does not understand passes")
	}
}
