// Codesize measures what generated code costs before it runs: how long the compiler
// works on 1,000 structs, and how much source and machine code a struct is. Start it in
// the folder bench, on Linux, when nothing else runs:
//
//	go run ./codesize
//
// It generates the same definition with fulmar gen, with and without what can be left
// out, and with the tool of Kitex, and compiles each package as often as -rounds says, by
// turns. What they import is compiled before and does not count. It takes about twenty
// minutes. What it generates is removed.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	structs := flag.Int("structs", 1000, "how many structs of ten fields there are")
	rounds := flag.Int("rounds", 3, "how often each package is compiled")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *structs, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "codesize:", err)
		os.Exit(1)
	}
}

// contestant is a way to generate the package.
type contestant struct {
	name string
	// module is the folder of the module that the package is in, folder where it is
	// there.
	module, folder string
	generate       func(ctx context.Context, definition string) error
}

// figures are what was measured of a contestant.
type figures struct {
	name string
	// compile has the processor time of each round.
	compile []time.Duration
	// source, code and archive are bytes.
	source, code, archive int64
}

func run(ctx context.Context, out io.Writer, structs, rounds int) (err error) {
	if structs < 1 || rounds < 1 {
		return fmt.Errorf("want at least one struct and one round (got %d and %d)", structs, rounds)
	}
	temporary, err := os.MkdirTemp("", "codesize")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	definition := filepath.Join(temporary, "many.thrift")
	if err := os.WriteFile(definition, []byte(define(structs)), 0o666); err != nil {
		return err
	}
	list := contestants()
	all := make([]figures, len(list))
	for i, c := range list {
		defer func() { err = errors.Join(err, os.RemoveAll(filepath.Join(c.module, generated))) }()
		if err := c.generate(ctx, definition); err != nil {
			return err
		}
		all[i].name = c.name
		// Everything that it imports.
		if _, err := compile(ctx, c, filepath.Join(temporary, "first.a")); err != nil {
			return err
		}
	}
	for round := range rounds {
		for i, c := range list {
			if err := measure(ctx, c, round, filepath.Join(temporary, c.name+".a"), &all[i]); err != nil {
				return err
			}
		}
	}
	return report(out, all, structs)
}

// define returns a definition with structs of ten fields.
func define(structs int) string {
	types := []string{"i32", "i64", "string", "bool", "double", "binary", "list<string>", "map<string, i64>", "optional i32", "optional S0"}
	var text strings.Builder
	text.WriteString("namespace go many\n")
	for n := range structs {
		fmt.Fprintf(&text, "struct S%d {\n", n)
		for i, name := range types {
			fmt.Fprintf(&text, "  %d: %s field_%d\n", i+1, name, i)
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// generated is where the packages are, below their modules.
const generated = "gen/codesize"

func contestants() []contestant {
	fulmar := func(name string, flags ...string) contestant {
		folder := generated + "/" + strings.ReplaceAll(name, "-", "")
		return contestant{name: name, module: ".", folder: folder + "/many", generate: func(ctx context.Context, definition string) error {
			output, err := filepath.Abs(folder)
			if err != nil {
				return err
			}
			arguments := slices.Concat([]string{"run", ".", "gen"}, flags, []string{"-o", output, definition})
			return command(ctx, "../cmd/fulmar", arguments...)
		}}
	}
	return []contestant{
		fulmar("fulmar"),
		fulmar("fulmar-lean", "--no-methods", "--no-descriptors"),
		fulmar("fulmar-kitexshape", "--shape=kitex"),
		{name: "kitex", module: "peers", folder: generated + "/many", generate: func(ctx context.Context, definition string) error {
			return command(ctx, "peers", "tool", "kitex", "-type", "thrift", "-module", "github.com/fulmar-rpc/fulmar/bench/peers", "-gen-path", generated, definition)
		}},
	}
}

// goCommand is the go command in a folder.
func goCommand(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	return command
}

// command runs the go command. What it prints counts only if it fails.
func command(ctx context.Context, folder string, arguments ...string) error {
	printed, err := goCommand(ctx, folder, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", strings.Join(arguments, " "), folder, err, printed)
	}
	return nil
}

// compile builds the package of a contestant, and returns the processor time that the go
// command and all that it has started took.
func compile(ctx context.Context, c contestant, archive string) (time.Duration, error) {
	build := goCommand(ctx, c.module, "build", "-o", archive, "./"+c.folder)
	if printed, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building %s: %w\n%s", c.name, err, printed)
	}
	return build.ProcessState.UserTime() + build.ProcessState.SystemTime(), nil
}

// measure compiles a package that the go command does not know yet.
func measure(ctx context.Context, c contestant, round int, archive string, f *figures) error {
	folder := filepath.Join(c.module, c.folder)
	source, err := sourceBytes(folder)
	if err != nil {
		return err
	}
	// The time makes it new for runs to come as well.
	changed := fmt.Sprintf("package many\n\n// Round %d, %d.\n", round, time.Now().UnixNano())
	name := filepath.Join(folder, "round.go")
	if err := os.WriteFile(name, []byte(changed), 0o666); err != nil {
		return err
	}
	took, err := compile(ctx, c, archive)
	if err = errors.Join(err, os.Remove(name)); err != nil {
		return err
	}
	f.compile = append(f.compile, took)
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	symbols, err := goCommand(ctx, ".", "tool", "nm", "-size", archive).Output()
	if err != nil {
		return fmt.Errorf("symbols of %s: %w", c.name, err)
	}
	f.source, f.archive = source, info.Size()
	f.code, err = codeBytes(bytes.NewReader(symbols))
	return err
}

// sourceBytes returns how much Go there is in a folder.
func sourceBytes(folder string) (total int64, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	if total == 0 {
		return 0, fmt.Errorf("no Go in %s", folder)
	}
	return total, nil
}

// codeBytes adds up the functions in what go tool nm -size prints: an address if there is
// one, a size, a letter, and a name.
func codeBytes(symbols io.Reader) (total int64, err error) {
	lines := bufio.NewScanner(symbols)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		at := slices.IndexFunc(words, func(word string) bool { return word == "T" || word == "t" })
		if at < 1 {
			continue
		}
		size, err := strconv.ParseInt(words[at-1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("symbol %.80q: %w", lines.Text(), err)
		}
		total += size
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if total == 0 {
		return 0, errors.New("no functions among the symbols")
	}
	return total, nil
}

// report prints a table for documents.
func report(out io.Writer, all []figures, structs int) error {
	const kilo = 1000
	text := "| contestant | compiling 1,000 structs, processor time | Go source of a struct | machine code | archive |\n|---|---|---|---|---|\n"
	for _, f := range all {
		slices.Sort(f.compile)
		each := f.compile[len(f.compile)/2].Seconds() * kilo / float64(structs)
		size := func(bytes int64) float64 { return float64(bytes) / float64(structs) / kilo }
		text += fmt.Sprintf("| `%s` | %.1f s | %.1f KB | %.1f KB | %.1f KB |\n", f.name, each, size(f.source), size(f.code), size(f.archive))
	}
	_, err := io.WriteString(out, text)
	return err
}
