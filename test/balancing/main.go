package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// documents is where the guide is, from this folder.
const documents = "../../docs/guide"

func main() {
	seed := flag.Uint64("seed", 1, "of all that is drawn")
	only := flag.String("scenario", "", "which of them, by the beginning of its name; all of them without it")
	instances := flag.Int("instances", 0, "how many; 10, 100 and 1,000 without it")
	write := flag.Bool("write", false, "write table and plot into the guide")
	flag.Parse()
	if err := run(*seed, *only, *instances, *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// plotted is how many instances there are in the plot.
const plotted = 100

func run(seed uint64, only string, instances int, write bool) error {
	sizes := []int{10, plotted, 1000}
	if instances > 0 {
		sizes = []int{instances}
	}
	var text strings.Builder
	for _, n := range sizes {
		t := newTable(n, seed, func(sc scenario) bool { return strings.HasPrefix(sc.name, only) })
		fmt.Println(t.text())
		text.WriteString(t.text() + "\n")
		if write && n == plotted {
			if err := drawPlot(filepath.Join(documents, "balancing.png"), t); err != nil {
				return err
			}
		}
	}
	if !write {
		return nil
	}
	return writeTables(filepath.Join(documents, "balancing.md"), text.String()+legend())
}
