package gen

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// The exit codes of commands that generate.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Command is a run of the generator from a command line: it says on Stdout what
// was done, and on Stderr what was wrong.
type Command struct {
	// Name is how messages call it: "fulmar gen".
	Name string
	// Line are the words that repeat the run: "fulmar", "gen", flags, files.
	Line   []string
	Stdout io.Writer
	Stderr io.Writer
}

// Run generates and returns the exit code: 0, or 1 if there were errors or
// Config.Check found something. After a run that wrote it prints the go:generate
// line that repeats it, except when go generate is what runs.
func (c Command) Run(config Config, plugins ...Plugin) int {
	result, err := runWriting(untilInterrupted, config, plugins)
	for _, diagnostic := range result.Diagnostics {
		fmt.Fprintln(c.Stderr, diagnostic)
	}
	for _, stale := range result.Stale {
		fmt.Fprintf(c.Stderr, "%s: %s\n", stale.Name, stale.Problem)
	}
	switch {
	case errors.Is(err, ErrInvalid):
		return exitFailed
	case errors.Is(err, ErrStale):
		fmt.Fprintf(c.Stderr, "%s: %s not up to date of %d; the same command without --check brings them up to date\n",
			c.Name, plural(len(result.Stale), "file"), result.Files)
		return exitFailed
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(c.Stderr, "%s: %s\n", c.Name, strings.TrimSuffix(line, "\n"))
		}
		return exitFailed
	}
	if _, err := io.WriteString(c.Stdout, c.summary(config, result)); err != nil {
		fmt.Fprintf(c.Stderr, "%s: %v\n", c.Name, err)
		return exitFailed
	}
	return 0
}

// summary is what a run that succeeded says.
func (c Command) summary(config Config, result Result) string {
	made := fmt.Sprintf("%s: %s, %s", c.Name, plural(result.Packages, "package"), plural(result.Files, "file"))
	if config.Check {
		return made + ", all up to date\n"
	}
	made = fmt.Sprintf("%s (%d written, %d unchanged, %d removed)\n", made, result.Written, result.Files-result.Written, result.Removed)
	if os.Getenv("GOFILE") != "" && os.Getenv("GOLINE") != "" {
		return made // go generate sets them
	}
	return made + "In a Go file of this folder, this line makes go generate repeat it:\n" +
		"//go:generate " + generateLine(c.Line) + "\n"
}

func plural(count int, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", count, noun)
}

// generateLine writes words as go generate reads them: those with spaces and the
// like as quoted strings, and $ by its name.
func generateLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		word = strings.ReplaceAll(word, "$", "${DOLLAR}")
		if quoted[i] = word; word == "" || strconv.Quote(word) != `"`+word+`"` || strings.Contains(word, " ") {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

// Main is the main function of a generator of one's own: "fulmar gen" with
// plugins, and the same flags, which come before the files. It takes the whole
// command line, os.Args, and returns the exit code: 0, 1 after errors, 2 if the
// command line is wrong.
func Main(arguments []string, stdout, stderr io.Writer, plugins ...Plugin) int {
	if len(arguments) == 0 {
		arguments = []string{"generate"}
	}
	name := strings.TrimSuffix(filepath.Base(arguments[0]), ".exe")
	var config Config
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "%s generates Go code from Thrift files and everything that they include.\n\nUsage:\n  %s [flags] file.thrift...\n\nFlags:\n", name, name)
		flags.PrintDefaults()
	}
	config.Bind(flags)
	switch err := flags.Parse(arguments[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // the flags have said why
	}
	config.Files = flags.Args()
	if err := config.Validate(); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		flags.Usage()
		return exitUsage
	}
	words := []string{name}
	if info, known := debug.ReadBuildInfo(); known && info.Path != "" && info.Path != "command-line-arguments" {
		words = []string{"go", "run", info.Path}
	}
	command := Command{Name: name, Line: slices.Concat(words, arguments[1:]), Stdout: stdout, Stderr: stderr}
	return command.Run(config, plugins...)
}
