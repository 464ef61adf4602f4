// Run measures the struct shapes and writes bench/results/shape.txt. Start it
// in the folder bench, when nothing else runs:
//
//	go run ./shape/run
//
// It takes about two minutes: seven passes over all benchmarks, in
// each of which the shapes of one case follow each other; medians are reported.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 7, "passes over all benchmarks")
	benchtime := flag.String("benchtime", "100ms", "time per benchmark and pass")
	output := flag.String("o", "results/shape.txt", "file to write")
	flag.Parse()
	if err := run(*rounds, *benchtime, *output); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(rounds int, benchtime, output string) error {
	start := facts()
	if _, err := command("go", "generate", "./shape"); err != nil {
		return err
	}
	sizes, err := codeSizes()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "shape")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, "shape.test")
	if _, err := command("go", "test", "-c", "-o", binary, "./shape"); err != nil {
		return err
	}
	memory, err := command(binary, "-test.run=^$", "-test.bench=^BenchmarkMemory$", "-test.benchtime=1x", "-test.cpu=1")
	if err != nil {
		return err
	}
	var raw bytes.Buffer
	results := newResults()
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		text, err := command(binary, "-test.run=^$", "-test.bench=^Benchmark[^M]", "-test.benchtime="+benchtime, "-test.cpu=1")
		if err != nil {
			return err
		}
		text = benchmarkLines(text)
		results.add(text)
		fmt.Fprintf(&raw, "# round %d\n%s", round+1, text)
	}
	var report bytes.Buffer
	fmt.Fprintf(&report, "%s# %d rounds of %s, GOMAXPROCS=1; load average at the end %s\n", start, rounds, benchtime, load())
	fmt.Fprintf(&report, "\n# Machine code of one struct's methods, bytes\n%s", sizes)
	fmt.Fprintf(&report, "\n# Memory of one list element; max_n: longest list under the default limits\n%s", benchmarkLines(memory))
	fmt.Fprintf(&report, "\n# Medians per list of 500 elements\n")
	results.print(&report)
	fmt.Fprintf(&report, "\n# Raw\n%s", raw.Bytes())
	if err := os.MkdirAll(filepath.Dir(output), 0o777); err != nil {
		return err
	}
	return os.WriteFile(output, report.Bytes(), 0o666)
}

// command returns what a command printed, both streams together.
func command(name string, arguments ...string) (string, error) {
	output, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, output)
	}
	return string(output), nil
}

// facts describes the machine without naming it.
func facts() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# suite shape, %s\n", time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "# %s %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				fmt.Fprintf(&b, ", %s", strings.TrimSpace(value))
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
		fmt.Fprintf(&b, ", kernel %s", version)
	}
	commit := "none"
	if text, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(text))
	}
	fmt.Fprintf(&b, "\n# commit %s; load average at the start %s\n", commit, load())
	return b.String()
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// codeSizes asks the compiler; -S prints each function's size in its heading.
func codeSizes() (string, error) {
	listing, err := command("go", "build", "-gcflags=-S", "./gen/shape")
	if err != nil {
		return "", err
	}
	heading := regexp.MustCompile(`shape\.\(\*(Opt|Bits|Pointer)(\d+)\)\.(ReadThrift|WriteThrift|CopyFrom|Reset) STEXT.* size=(\d+)`)
	var lines []string
	for _, found := range heading.FindAllStringSubmatch(listing, -1) {
		lines = append(lines, fmt.Sprintf("VALUE shape/code/%s/%s bytes %s %s\n", found[3], found[2], strings.ToLower(found[1]), found[4]))
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("no functions in the compiler's listing")
	}
	slices.SortFunc(lines, naturally)
	return strings.Join(slices.Compact(lines), ""), nil
}

// naturally orders by case and puts a struct of 2 fields before one of 20.
func naturally(a, b string) int {
	pad := func(s string) string {
		return regexp.MustCompile(`\d+`).ReplaceAllStringFunc(s, func(n string) string { return fmt.Sprintf("%8s", n) })
	}
	return strings.Compare(pad(a), pad(b))
}

func benchmarkLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Benchmark") {
			b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
	}
	return b.String()
}

// results collects figures by case (the name without the shape), shape and
// unit.
type results struct {
	cases  []string
	values map[string][]float64
}

func newResults() *results { return &results{values: make(map[string][]float64)} }

func (r *results) add(text string) {
	for line := range strings.Lines(text) {
		columns := strings.Fields(line)
		name, shape := splitName(columns[0])
		if !slices.Contains(r.cases, name) {
			r.cases = append(r.cases, name)
		}
		for i := 2; i+1 < len(columns); i += 2 {
			value, err := strconv.ParseFloat(columns[i], 64)
			if err == nil {
				key := name + " " + shape + " " + columns[i+1]
				r.values[key] = append(r.values[key], value)
			}
		}
	}
}

func splitName(name string) (group, shape string) {
	i := strings.LastIndexByte(name, '/')
	return strings.ToLower(strings.TrimPrefix(name[:i], "Benchmark")), name[i+1:]
}

func (r *results) median(name, shape, unit string) float64 {
	values := slices.Sorted(slices.Values(r.values[name+" "+shape+" "+unit]))
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

// ratio is the median over rounds of the ratio within each round.
func (r *results) ratio(name, ours, peer, unit string) float64 {
	numerators, denominators := r.values[name+" "+ours+" "+unit], r.values[name+" "+peer+" "+unit]
	var ratios []float64
	for i := range min(len(numerators), len(denominators)) {
		ratios = append(ratios, numerators[i]/denominators[i])
	}
	if len(ratios) == 0 {
		return 0
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func (r *results) print(b *bytes.Buffer) {
	units := []struct{ name, unit string }{{"ns_op", "ns/op"}, {"bytes", "B/op"}, {"allocs", "allocs/op"}}
	for _, name := range r.cases {
		for _, u := range units {
			for _, shape := range []string{"opt", "bits", "pointer"} {
				value := r.median(name, shape, u.unit)
				if u.unit == "ns/op" || value > 0 {
					fmt.Fprintf(b, "VALUE shape/%s %s %s %.0f\n", name, u.name, shape, value)
				}
			}
		}
	}
	fmt.Fprintf(b, "\n# Ratios, median over rounds; below 1 is better for opt\n")
	for _, name := range r.cases {
		for _, peer := range []string{"bits", "pointer"} {
			fmt.Fprintf(b, "RATIO shape/%s ns_op opt/%s %.2f\n", name, peer, r.ratio(name, "opt", peer, "ns/op"))
		}
	}
}
