package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// runTestPlugin makes the test binary behave as the plugin program that it is
// called like, through a link.
func runTestPlugin(name string) int {
	switch name {
	case "tags":
		return gen.PluginMain(os.Stdin, os.Stdout, os.Stderr, func(options map[string]string) (gen.Plugin, error) {
			if options["key"] == "" {
				return nil, errors.New("option key: is missing")
			}
			return tagger{options["key"]}, nil
		})
	case "broken":
		return gen.PluginMain(os.Stdin, os.Stdout, os.Stderr, func(map[string]string) (gen.Plugin, error) { return broken{}, nil })
	case "crash":
		fmt.Fprint(os.Stderr, "no \x1b[31mluck\nwith this one")
		return 3
	case "hasty":
		fmt.Print(`{"protocol": 1}`) // without reading what it was asked
		return 0
	case "garbage":
		fmt.Print(`{"protocol": 1, "files": [{"file": 0, `)
		return 0
	case "newer":
		fmt.Print(`{"protocol": 2}`)
		return 0
	case "outside":
		fmt.Print(`{"protocol": 1, "files": [{"file": 0, "suffix": "../../x", "text": "var X int"}]}`)
		return 0
	case "chatty":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 1<<20))
		fmt.Print(`{"protocol": 1}`)
		return 0
	case "huge":
		line := bytes.Repeat([]byte(" "), 1<<20)
		for range 200 {
			if _, err := os.Stdout.Write(line); err != nil {
				return 1
			}
		}
		return 0
	case "hang", "mutter", "silent":
		runEndlessPlugin(name)
	case "flood":
		if err := startChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return runTestPlugin("huge")
	case "parent":
		if err := startChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Print(`{"protocol": 1}`)
		return 0
	case "child":
		held, err := os.OpenFile(os.Getenv(pipeVariable), os.O_RDWR, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintln(os.Stderr, ready)
		waitForEver()
		held.Close()
	}
	return 1
}

// runEndlessPlugin is those that never end.
func runEndlessPlugin(name string) {
	switch name {
	case "mutter":
		for {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<10))
		}
	case "silent": // lets go of everything that it could be heard by, and stays
		os.Stdin.Close()
		os.Stdout.Close()
		os.Stderr.Close()
	}
	waitForEver()
}

// ready is what the process "child" says once it holds the pipe.
const ready = "ready"

// startChild starts that process, with the output of this one, and waits until it
// is ready.
func startChild() error {
	child := exec.Command(filepath.Join(filepath.Dir(os.Args[0]), "fulmar-gen-child"))
	child.Stdout = os.Stdout
	said, err := child.StderrPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err == nil && line != ready+"\n" {
		err = errors.New(line)
	}
	return err
}

// pipeVariable names a pipe that the process "child" holds while it lives.
const pipeVariable = "FULMAR_TEST_PIPE"

func waitForEver() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, os.Interrupt)
	<-never
}

// tagger gives every field a tag, and says so in a file.
type tagger struct{ key string }

func (tagger) Name() string { return "tags" }

func (tagger) Transform(*gen.Model) error { return nil }

func (t tagger) Generate(output *gen.Output) error {
	for _, file := range output.Program().Files {
		for _, s := range file.Structs {
			for _, field := range s.Fields {
				output.FieldTag(field, fmt.Sprintf("%s:%q", t.key, field.Name))
				if field.Doc == "wrong" {
					output.Errorf(field.Position, "field %s is wrong", field.Name)
				}
			}
		}
		output.AddFile(file, "tagged", "// Tagged says by whom.\nconst Tagged = "+fmt.Sprintf("%q", t.key))
	}
	return nil
}

// broken inserts what is no Go.
type broken struct{}

func (broken) Name() string { return "broken" }

func (broken) Transform(*gen.Model) error { return nil }

func (broken) Generate(output *gen.Output) error {
	for _, file := range output.Program().Files {
		for _, s := range file.Structs {
			output.AfterStruct(s, "func (", schema.Import{Name: "os", Path: "os"})
		}
	}
	return nil
}

// pluginPath returns a folder with the test binary under the names of plugin
// programs.
func pluginPath(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(folder, pluginPrefix+name)); err != nil {
			t.Skip(err)
		}
	}
	return folder
}

// withPlugins runs the command with these plugins, and nothing else, in its PATH.
func withPlugins(t *testing.T, folder string, names []string, arguments ...string) result {
	t.Helper()
	run := command(t, folder, arguments...)
	run.Env = append(run.Env, "PATH="+pluginPath(t, names...))
	return finish(t, run)
}

// pluginFlagCases are those of TestGen_ObeysEveryFlag that need plugins.
func pluginFlagCases() map[string]func(t *testing.T, flag string) {
	return map[string]func(t *testing.T, flag string){
		"plugin": func(t *testing.T, flag string) {
			folder := newFolder(t, "a.thrift", "namespace go a\nstruct S { 1: i32 n }")
			withPlugins(t, folder, []string{"tags", "hasty"}, "gen", flag, "tags=key=db", flag, "hasty", "a.thrift").want(t, 0,
				"4 written", "//go:generate fulmar gen "+flag+" tags=key=db "+flag+" hasty a.thrift\n")
			contains(t, filepath.Join(folder, "gen/a/a_types.go"), "`json:\"n\" db:\"n\"`")
			contains(t, filepath.Join(folder, "gen/a/a_tagged.go"), "// Code generated by fulmar gen from a.thrift. DO NOT EDIT.\n\npackage a\n\n// Tagged says by whom.\nconst Tagged = \"db\"\n")
			withPlugins(t, folder, nil, "gen", "--check", "a.thrift").want(t, exitFailed, "gen/a/a_tagged.go: is left over", "gen/a/a_types.go: differs")
			withPlugins(t, folder, nil, "gen", "a.thrift").want(t, 0, "(1 written, 2 unchanged, 1 removed)")
		},
		"plugin-timeout": func(t *testing.T, flag string) {
			folder := newFolder(t, "a.thrift", "struct S {}")
			withPlugins(t, folder, []string{"hang"}, "gen", "--plugin", "hang", flag, "1ms", "a.thrift").want(t, exitFailed,
				"fulmar gen: plugin hang: fulmar-gen-hang: is not done after 1ms and was killed (--plugin-timeout)\n")
			withPlugins(t, folder, []string{"hasty"}, "gen", "--plugin", "hasty", flag, "0s", "a.thrift").want(t, exitUsage, "not positive")
		},
	}
}

// TestPlugin_FailuresAreExplained runs programs that do everything wrong. What is
// said names the plugin, and nothing is written.
func TestPlugin_FailuresAreExplained(t *testing.T) {
	for name, want := range map[string][]string{
		"missing": {"fulmar gen: plugin missing: fulmar-gen-missing cannot be run: executable file not found in $PATH\n"},
		"crash":   {"fulmar-gen-crash: no [31mluck\nfulmar-gen-crash: with this one\n", "fulmar gen: plugin crash: fulmar-gen-crash: exit status 3\n"},
		"garbage": {"fulmar gen: plugin garbage: response: ends too early\n"},
		"newer":   {"fulmar gen: plugin newer: response: protocol 2, expected 1"},
		"outside": {`a.thrift: plugin outside: file ../../x: suffix "../../x": expected small letters and digits after a letter`},
		"huge":    {"fulmar gen: plugin huge: fulmar-gen-huge: the response is too long (limit 134217728 bytes)\n"},
		"broken":  {"a.thrift:1:8: plugin broken: struct.after: is not Go: line 1:"},
		"tags":    {"fulmar-gen-tags: option key: is missing\n", "fulmar gen: plugin tags: fulmar-gen-tags: exit status 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := newFolder(t, "a.thrift", "struct S {}")
			names := []string{name}
			if name == "missing" {
				names = nil
			}
			withPlugins(t, folder, names, "gen", "--plugin", name, "a.thrift").want(t, exitFailed, want...)
			wantTree(t, folder, "a.thrift")
		})
	}
}

func TestPlugin_ReportsInTheDefinition(t *testing.T) {
	folder := newFolder(t, "idl/a.thrift", "struct S {\n  /** wrong */\n  1: i32 n\n}")
	withPlugins(t, folder, []string{"tags"}, "gen", "--plugin", "tags=key=db", "idl/a.thrift").want(t, exitFailed, "idl/a.thrift:3:10: plugin tags: field n is wrong\n")
	wantTree(t, folder, "idl/a.thrift")
}

func TestPlugin_SaysNotTooMuch(t *testing.T) {
	folder := newFolder(t, "a.thrift", "struct S {}")
	result := withPlugins(t, folder, []string{"chatty"}, "gen", "--plugin", "chatty", "a.thrift")
	result.want(t, 0, "3 written")
	const most = 70 << 10
	if len(result.stderr) > most || !strings.HasSuffix(result.stderr, "fulmar-gen-chatty: more is not shown (limit 65536 bytes)\n") {
		t.Errorf("%d bytes on standard error", len(result.stderr))
	}
}

// TestPlugin_IsKilledWhateverItDoes has programs that never end, and a request that is
// longer than a pipe holds, which they do not read.
func TestPlugin_IsKilledWhateverItDoes(t *testing.T) {
	const most = 70 << 10
	folder := newFolder(t, "a.thrift", "namespace go a\n"+manyEnums(2000))
	for _, name := range []string{"hang", "mutter", "silent"} {
		result := withPlugins(t, folder, []string{name}, "gen", "--plugin", name, "--plugin-timeout", "300ms", "a.thrift")
		result.want(t, exitFailed, "fulmar gen: plugin "+name+": fulmar-gen-"+name+": is not done after 300ms and was killed (--plugin-timeout)\n")
		if len(result.stderr) > most {
			t.Errorf("%s: %d bytes on standard error", name, len(result.stderr))
		}
		wantTree(t, folder, "a.thrift")
	}
}

// manyEnums declares enums, each of which is a hundred bytes or more for a plugin.
func manyEnums(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "enum E%d { A = 1 }\n", i)
	}
	return text.String()
}

func TestPlugin_IsNotFoundInTheWorkingDirectory(t *testing.T) {
	folder := newFolder(t, "a.thrift", "struct S {}")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(folder, pluginPrefix+"hasty")); err != nil {
		t.Skip(err)
	}
	run := command(t, folder, "gen", "--plugin", "hasty", "a.thrift")
	run.Env = append(run.Env, "PATH=.")
	finish(t, run).want(t, exitFailed, "fulmar-gen-hasty cannot be run: ")
}

func TestPlugin_OptionsAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"mock":         "mock map[]",
		"mock=a=b":     "mock map[a:b]",
		"mock=a=b=c":   "mock map[a:b=c]",
		"mock=a=,b=x":  "mock map[a: b:x]",
		"a-b2=c.d_e=1": "a-b2 map[c.d_e:1]",
	} {
		program, err := parsePlugin(text)
		if err != nil || fmt.Sprint(program.name, " ", program.options) != want {
			t.Errorf("%s: %+v, %v, want %s", text, program, err, want)
		}
	}
	for _, text := range []string{"", "=", "Mock", "../x", "a/b", "-a", "mock=", "mock=a", "mock=a=b,", "mock=a=b,a=c", "mock==b", "mock=a b=c", strings.Repeat("x", 65)} {
		if program, err := parsePlugin(text); err == nil {
			t.Errorf("%q: %+v", text, program)
		}
	}
}

func TestPlugin_ReadsTheModelOnly(t *testing.T) {
	if code := gen.PluginMain(strings.NewReader(""), io.Discard, io.Discard, nil); code != exitFailed {
		t.Errorf("exit code %d without a request", code)
	}
}

// TestPlugin_OfTheGuideRuns takes the plugin in Python out of the guide and runs
// it.
func TestPlugin_OfTheGuideRuns(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	guide, err := os.ReadFile("../../docs/guide/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(guide), "```python\n")
	source, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatal("the guide has no plugin in Python")
	}
	folder := newFolder(t, "a.thrift", "namespace go a\nstruct S { 1: i32 n }\nunion U { 1: i32 n }", "bin/fulmar-gen-docs", source)
	if err := os.Chmod(filepath.Join(folder, "bin/fulmar-gen-docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := command(t, folder, "gen", "--plugin", "docs", "a.thrift")
	run.Env = append(run.Env, "PATH="+filepath.Join(folder, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	finish(t, run).want(t, 0, "3 written")
	contains(t, filepath.Join(folder, "gen/a/a_types.go"), `func (*S) DefinedAt() string { return "a.thrift:2:8" }`)
	contains(t, filepath.Join(folder, "gen/a/a_types.go"), `func (*U) DefinedAt() string { return "a.thrift:3:7" }`)
}
