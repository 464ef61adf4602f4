// Command bench compares Fulmar with its peers.
//
//	bench run -suite net [-quick]     measures; `make bench SUITE=net` does this
//	bench run -suite rpc -before DIR  measures against an earlier build of itself
//	bench compare old.json new.json   compares two files of results
//
// Start it in the root of the repository. See docs/guide/benchmarks.md.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/governance"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/bench/machine"
	"github.com/fulmar-rpc/fulmar/bench/netsuite"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
	"github.com/fulmar-rpc/fulmar/bench/viewsuite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	// The inner process of an isolated run has said it already.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("want one of run, compare")
	}
	switch arguments[0] {
	case "run":
		return measure(ctx, arguments[1:])
	case "compare":
		return compare(arguments[1:])
	}
	return fmt.Errorf("want one of run, compare (got %q)", arguments[0])
}

func suites() []harness.Suite {
	return []harness.Suite{rpc.Suite(), rpc.GRPCSuite(), rpc.StreamSuite(), netsuite.Suite(), papernet.Suite(), codec.Suite(), codec.PaperSuite(), viewsuite.Suite(), viewsuite.PaperSuite(), governance.Suite()}
}

func findSuite(name string) (harness.Suite, error) {
	var known []string
	for _, suite := range suites() {
		if suite.Name == name {
			return suite, nil
		}
		known = append(known, suite.Name)
	}
	return harness.Suite{}, fmt.Errorf("no suite %q (there are: %s)", name, strings.Join(known, ", "))
}

// request is what somebody asks to be measured.
type request struct {
	suite harness.Suite
	// root is the root of the tree that is measured, and before that of an earlier one
	// that it meets, or empty.
	root, before string
	options      harness.Options
	output       string
	// plain asks for the loopback device of the machine, and congestion names what
	// controls congestion in a network namespace.
	plain      bool
	congestion string
}

// parseRequest reads the arguments of the command run.
func parseRequest(arguments []string) (*request, error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	root := flags.String("root", ".", "the root of the repository")
	name := flags.String("suite", "", "the suite to run")
	quick := flags.Bool("quick", false, "only what a floor names, in the deciding placement")
	only := flags.String("cases", "", "run only these cases, separated by commas")
	placement := flags.String("placement", "", "run only in this placement: pinned or free")
	before := flags.String("before", "", "the root of another tree of this repository, generated: contestants of ours meet themselves as built from there, and nobody else")
	rounds := flags.Int("rounds", 0, "rounds (default 5)")
	duration := flags.Duration("duration", 0, "length of a window (default 2s, or less in quick runs of some suites)")
	slice := flags.Duration("slice", 0, "contestants take turns of this length within one window, which is for machines that are not quiet; without latencies (default: windows one after the other)")
	output := flags.String("o", "", "file for the results (default bench/results/<suite>.json, with -before <suite>-before.json)")
	congestion := flags.String("congestion", "cubic,reno", "congestion control: the first that the kernel allows")
	plain := flags.Bool("plain", false, "run on the loopback device of the machine, not in a network namespace")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	asked := &request{output: *output, plain: *plain, congestion: *congestion}
	var err error
	if asked.suite, err = findSuite(*name); err != nil {
		return nil, err
	}
	if asked.root, err = filepath.Abs(*root); err != nil {
		return nil, err
	}
	file := *name + ".json"
	if *before != "" {
		if asked.before, err = filepath.Abs(*before); err != nil {
			return nil, err
		}
		if asked.suite, err = asked.suite.Before(asked.before); err != nil {
			return nil, err
		}
		file = *name + "-before.json"
	}
	if asked.output == "" {
		asked.output = filepath.Join(asked.root, "bench", "results", file)
	}
	asked.options = harness.Options{
		Settings:  asked.suite.Settings(*quick),
		Placement: harness.Placement(*placement),
		Binaries:  filepath.Join(asked.root, "bin", "bench-contestants"),
		Progress:  os.Stderr, Log: os.Stderr,
	}
	asked.options.Settings.Rounds = cmp.Or(*rounds, asked.options.Settings.Rounds)
	asked.options.Settings.Duration = cmp.Or(*duration, asked.options.Settings.Duration)
	asked.options.Settings.Slice = *slice
	if *only != "" {
		asked.options.Only = strings.Split(*only, ",")
	}
	return asked, checkPlacement(asked.options.Placement)
}

// measure builds and runs a suite. It does the second part in a process of its
// own, whose network nobody else uses.
func measure(ctx context.Context, arguments []string) error {
	asked, err := parseRequest(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if !machine.Inside() {
		fmt.Fprintf(os.Stderr, "building the contestants of suite %s\n", asked.suite.Name)
		if err := harness.Build(ctx, asked.root, asked.suite, asked.options.Binaries, os.Stderr); err != nil {
			return err
		}
	}
	if asked.plain {
		asked.options.Network = machine.Plain("it was not asked for")
	} else {
		network, done, err := machine.Isolate(ctx, asked.congestion)
		if done || err != nil {
			return err
		}
		asked.options.Network = network
	}
	asked.options.Commit = commit(ctx, asked.root)
	if asked.before != "" {
		asked.options.Commit += ", before " + commit(ctx, asked.before)
	}
	results, failure := harness.Run(ctx, asked.suite, asked.options)
	if results == nil {
		return failure
	}
	return errors.Join(report(ctx, asked.suite, results, asked.root, asked.output), failure)
}

// report adds the notes of the suite, and writes everything to a file and to
// standard output.
func report(ctx context.Context, suite harness.Suite, results *harness.Results, root, output string) (err error) {
	if suite.Notes != nil {
		results.Notes, err = suite.Notes(ctx, root)
	}
	return errors.Join(results.Write(output), results.Print(os.Stdout), err)
}

func checkPlacement(placement harness.Placement) error {
	switch placement {
	case "", harness.Pinned, harness.Free:
		return nil
	default:
		return fmt.Errorf("no placement %q (there are: %s, %s)", placement, harness.Pinned, harness.Free)
	}
}

// commit names what is measured, with a mark if files differ from it.
func commit(ctx context.Context, root string) string {
	git := func(arguments ...string) (string, error) {
		output, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).Output()
		return string(bytes.TrimSpace(output)), err
	}
	name, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changes, err := git("status", "--porcelain", "--", ".", ":!bench/results"); err != nil || changes != "" {
		name += "+changes"
	}
	return name
}

func compare(files []string) error {
	if len(files) != 2 {
		return errors.New("want two files of results: before and after")
	}
	before, err := harness.Load(files[0])
	if err != nil {
		return err
	}
	after, err := harness.Load(files[1])
	if err != nil {
		return err
	}
	return harness.Compare(os.Stdout, before, after)
}
