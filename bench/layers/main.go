package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
		os.Exit(1)
	}
}

// topFunctions is how many functions of a layer are listed.
const topFunctions = 20

func run(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("layers", flag.ContinueOnError)
	within := flags.String("in", "", "list the functions with the most time in this layer")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("want the names of profiles, as in: layers [-in layer] file.pprof")
	}
	var columns []column
	for _, name := range flags.Args() {
		samples, err := read(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		columns = append(columns, column{strings.TrimSuffix(filepath.Base(name), ".pprof"), samples})
	}
	if *within == "" {
		return write(out, columns)
	}
	for _, c := range columns {
		fmt.Fprintln(out, c.name)
		_, total := sum(c.samples)
		for _, s := range top(c.samples, *within, topFunctions) {
			fmt.Fprintf(out, "%6.1f %%  %s\n", 100*float64(s.nanos)/float64(max(total, 1)), s.layer)
		}
	}
	return nil
}

// read reads the samples of a CPU profile.
func read(name string) ([]sample, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parsed, err := profile.Parse(file)
	if err != nil {
		return nil, err
	}
	if len(parsed.SampleType) < 2 || parsed.SampleType[1].Unit != "nanoseconds" {
		return nil, errors.New("no profile of processor time")
	}
	var samples []sample
	for _, s := range parsed.Sample {
		var stack []string
		for _, location := range s.Location {
			for _, line := range location.Line {
				if line.Function != nil {
					stack = append(stack, line.Function.Name)
				}
			}
		}
		samples = append(samples, sample{stack, s.Value[1]})
	}
	return samples, nil
}
