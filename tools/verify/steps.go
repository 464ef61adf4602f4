package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// testStages is what `make test` promises, cheap checks first.
func testStages() []stage {
	return slices.Concat(
		inOrder([]step{{"generated code is up to date", checkGenerated}}),
		inOrder(lintSteps()),
		inOrder(buildSteps()),
		// Alone, because it runs as many packages at a time as two of the others.
		inOrder([]step{{"tests", plainTests}}),
		// The longest first. Beside each other, because half of the time they wait: for
		// deadlines, for peers, for the last package.
		[]stage{{
			{"tests with -race", raceTests},
			{"tests with 32 bits", narrowTests},
			{"event loop on each engine", engineTests},
			{"tests with -tags invariants", invariantsTests},
			{"interop", interop},
			{"simulation seeds", simulation},
			{"tests with -tags purego", puregoTests},
			{"examples", examples},
		}},
		inOrder(fuzzSteps()),
	)
}

func lintSteps() []step {
	return []step{
		{"gofmt", checkFormat},
		{"go mod tidy", func(ctx context.Context, v *verifier, log *log) error {
			return v.inModules(ctx, log, v.modules, nil, "go", "mod", "tidy", "-diff")
		}},
		{"go vet", func(ctx context.Context, v *verifier, log *log) error {
			return v.inspect(ctx, log, "go", "vet")
		}},
		{"staticcheck", func(ctx context.Context, v *verifier, log *log) error {
			return v.inspect(ctx, log, filepath.Join(v.root, "bin", "staticcheck"))
		}},
	}
}

func fuzzSteps() []step {
	return []step{{"fuzzing", func(ctx context.Context, v *verifier, log *log) error { return v.fuzz(ctx, log) }}}
}

// buildSteps compiles for every platform and every tag that Fulmar promises,
// without cgo, which nothing in the tree uses: but for linux/amd64, as everything else
// there is, so that packages are compiled once. Tags matter for the root module only.
func buildSteps() []step {
	var steps []step
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
		steps = append(steps, step{"build " + platform, func(ctx context.Context, v *verifier, log *log) error {
			system, processor, _ := strings.Cut(platform, "/")
			environment := []string{"GOOS=" + system, "GOARCH=" + processor}
			if platform != "linux/amd64" {
				environment = append(environment, "CGO_ENABLED=0")
			}
			var failures []error
			for _, tag := range []string{"invariants", "purego"} {
				failures = append(failures, v.inModules(ctx, log, []string{"."}, environment, "go", "build", "-tags="+tag, "./..."))
			}
			// Where there is one command only, build would leave it in the tree.
			failures = append(failures, v.inModules(ctx, log, v.modulesWithout(peerModules()...), environment, "go", "build", "-o="+os.DevNull, "./..."))
			if system != "linux" {
				// Tests that are written for one platform compile there too.
				failures = append(failures, v.inModules(ctx, log, []string{"."}, environment, "go", "vet", "./..."))
			}
			return errors.Join(failures...)
		}})
	}
	return steps
}

// checkFormat wants every Go file as gofmt prints it.
func checkFormat(_ context.Context, v *verifier, log *log) error {
	unformatted := 0
	err := v.eachFile(func(name string, content []byte) error {
		if filepath.Ext(name) != ".go" {
			return nil
		}
		formatted, err := format.Source(content)
		if err != nil || !bytes.Equal(formatted, content) {
			unformatted++
			fmt.Fprintln(log, name)
		}
		return nil
	})
	if err == nil && unformatted > 0 {
		err = fmt.Errorf("%d files differ from what gofmt prints", unformatted)
	}
	return err
}

// checkGenerated runs `make generate` and wants no file to change.
func checkGenerated(ctx context.Context, v *verifier, log *log) error {
	before, err := v.fingerprint()
	if err != nil {
		return err
	}
	if err := v.command(ctx, log, ".", "make", "--no-print-directory", "generate").Run(); err != nil {
		return fmt.Errorf("make generate: %w", err)
	}
	after, err := v.fingerprint()
	if err != nil {
		return err
	}
	var changed []string
	for name, sum := range after {
		if before[name] != sum {
			changed = append(changed, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		slices.Sort(changed)
		return fmt.Errorf("make generate changes %s: commit what it writes", strings.Join(changed, ", "))
	}
	return nil
}

// fingerprint hashes the files of the tree, except what is generated into
// folders that git ignores.
func (v *verifier) fingerprint() (map[string][sha256.Size]byte, error) {
	sums := map[string][sha256.Size]byte{}
	err := v.eachFile(func(name string, content []byte) error {
		if !strings.Contains(name, "/gen/") || strings.HasPrefix(name, "gen/") {
			sums[name] = sha256.Sum256(content)
		}
		return nil
	})
	return sums, err
}

// eachFile visits the files of the tree by their names relative to the root,
// without hidden folders, testdata and build results.
func (v *verifier) eachFile(visit func(name string, content []byte) error) error {
	return filepath.WalkDir(v.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != v.root && skipFolder(entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(v.root, path)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name), content)
	})
}

// interopModule has the tests that need peers; they run in a step of their own.
const interopModule = "test/interop"

// peerModules are programs that the interop tests, the benchmarks and the demo
// start, or, in test/chaos, that do things to processes which only Linux can. They
// run where these run and need not build for other platforms, which costs a
// minute and a half for each; and most of their code was generated by the tools
// of others. contrib/grpccompat and contrib/etcd have no code of their own for a platform, and compile
// all of grpc-go for each.
func peerModules() []string {
	return []string{"bench/peers", "contrib/etcd", "contrib/grpccompat", "test/apache", "test/chaos", "test/grpc", "test/kitex", "test/kitexshape"}
}

// modulesWithout returns all modules but these.
func (v *verifier) modulesWithout(excluded ...string) []string {
	return slices.DeleteFunc(slices.Clone(v.modules), func(module string) bool {
		return slices.Contains(excluded, filepath.ToSlash(module))
	})
}

// inspect runs a command that looks at source code on all packages, except on
// what the tools of peers have generated.
func (v *verifier) inspect(ctx context.Context, log *log, name string, arguments ...string) error {
	failures := []error{v.inModules(ctx, log, v.modulesWithout(peerModules()...), nil, name, slices.Concat(arguments, []string{"./..."})...)}
	for _, module := range v.modules {
		if !slices.Contains(peerModules(), filepath.ToSlash(module)) {
			continue
		}
		packages, err := v.writtenPackages(ctx, log, module)
		if err == nil {
			err = v.inModules(ctx, log, []string{module}, nil, name, slices.Concat(arguments, packages)...)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// writtenPackages returns the packages of a module that were not generated.
func (v *verifier) writtenPackages(ctx context.Context, log *log, module string) ([]string, error) {
	var list bytes.Buffer
	command := v.command(ctx, log, module, "go", "list", "./...")
	command.Stdout = &list
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go list in %s: %w", module, err)
	}
	return slices.DeleteFunc(strings.Fields(list.String()), func(name string) bool {
		return strings.Contains(name, "/gen/")
	}), nil
}

func plainTests(ctx context.Context, v *verifier, log *log) error {
	_, err := v.goTest(ctx, log, v.modulesWithout(interopModule), nil, "-shuffle=on", packageTimeout, waiting, "./...")
	return err
}

// sequential lists packages that start no goroutines: the race detector has
// nothing to see there, and poisoned buffers have nothing to poison.
func sequential(importPath string) bool {
	for _, part := range []string{"/internal/archtest", "/internal/idl", "/internal/emit", "/internal/outfolder", "/internal/pluginwire", "/gen", "/docs/"} {
		if strings.Contains(importPath, part) {
			return true
		}
	}
	return false
}

func (v *verifier) concurrentPackages(ctx context.Context, log *log) ([]string, error) {
	var list bytes.Buffer
	command := v.command(ctx, log, ".", "go", "list", "./...")
	command.Stdout = &list
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(list.String()), sequential), nil
}

// packageTimeout is generous, because it is for what hangs: on a machine that others
// use too, the event loop has taken more than five minutes with the race detector.
const packageTimeout = "-timeout=10m"

// waiting is how many parallel tests of a package run at once: those that say t.Parallel
// wait most of their time. With as many as there are processors, two, the tests of the root
// package took 60 s in place of 46.
const waiting = "-parallel=8"

// eventLoopModels are the tests that visit all states of a model, in one goroutine and
// without a line of the event loop. They run once, plainly: with the race detector they
// are a quarter of the time of their package. Those that compare a model with the code
// have other names.
const eventLoopModels = "^Test(Conn|Combine)Model_(LosesNothing|KeepsItsPromises|FindsMistakes)$"

func raceTests(ctx context.Context, v *verifier, log *log) error {
	packages, err := v.concurrentPackages(ctx, log)
	if err != nil {
		return err
	}
	_, err = v.goTest(ctx, log, []string{"."}, []string{"CGO_ENABLED=1"}, append([]string{"-race", packageTimeout, waiting, "-skip=" + eventLoopModels}, packages...)...)
	return err
}

func invariantsTests(ctx context.Context, v *verifier, log *log) error {
	packages, err := v.concurrentPackages(ctx, log)
	if err != nil {
		return err
	}
	_, err = v.goTest(ctx, log, []string{"."}, nil, append([]string{"-tags=invariants", packageTimeout, waiting, "-skip=" + eventLoopModels}, packages...)...)
	return err
}

// narrowTests runs the same packages as a 32-bit program: there an int is shorter
// than many numbers on the wire, and 64-bit atomics have to be aligned. Where the
// system cannot run one, the step says so and does nothing.
func narrowTests(ctx context.Context, v *verifier, log *log) error {
	environment := []string{"GOOS=linux", "GOARCH=386", "CGO_ENABLED=0"}
	probe := filepath.Join(v.root, ".cache", "narrow")
	if err := os.MkdirAll(probe, 0o755); err != nil {
		return err
	}
	source, binary := filepath.Join(probe, "main.go"), filepath.Join(probe, "main")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return err
	}
	if err := v.inModules(ctx, log, []string{"."}, environment, "go", "build", "-o", binary, source); err != nil {
		return err
	}
	if err := runsHere(ctx, binary); err != nil {
		return err
	}
	packages, err := v.concurrentPackages(ctx, log)
	if err != nil {
		return err
	}
	// Short: what is long about tests, crowds and many seeds, is the same there.
	_, err = v.goTest(ctx, log, []string{"."}, environment, append([]string{"-short", packageTimeout, waiting, "-skip=" + eventLoopModels}, packages...)...)
	return err
}

// puregoTests runs the package that has assembly as a program without it, and the one
// that has maps of its own without them. All other packages are the same with that tag.
func puregoTests(ctx context.Context, v *verifier, log *log) error {
	tests, err := v.goTest(ctx, log, []string{"."}, nil, "-tags=purego", packageTimeout, "./internal/byteswap", "./thrift")
	if err == nil && tests == 0 {
		return errors.New("no test ran")
	}
	return err
}

// runsHere returns errAbsent with the reason if this system cannot execute a
// program that does nothing.
func runsHere(ctx context.Context, binary string) error {
	if err := exec.CommandContext(ctx, binary).Run(); err != nil {
		return fmt.Errorf("this system runs no 32-bit programs (%v): %w", err, errAbsent)
	}
	return nil
}

// eventLoopFaults are the tests of the event loop for faults that it had or that
// others have: stale events, races of Close, starvation, ends, full descriptors.
// Which of them a bug breaks depends on how many processors there are.
const eventLoopFaults = "^Test(Stale|Close|Buffers|Starvation|Rescue|Role|Raw|EOF|OnEOF|Reset|WriteFailure)_" +
	"|^TestHandler_(Leaving|LastWords|Lingering|ItsError|Wanting)|^TestConn_(Pause|Read|CloseDuring|OnClose)|^TestListener_(Survives|Default|Pollers)"

// engineTests runs the tests of the event loop on the engines and ways of
// dispatching that are not the default, but for models, which have none, and those for
// faults with one processor, with two, and with more than there may be. The race detector
// has seen spawned handlers in the step before: the default spawns where there is little
// to do, as in tests.
func engineTests(ctx context.Context, v *verifier, log *log) error {
	runs := [][]string{
		{"-race", "-cpu=1,2,8", "-run=" + eventLoopFaults, "./eventloop"}, // the longest
		{"-skip=Model_", "./eventloop", "-engine=std"},
		{"-skip=Model_", "./eventloop", "-engine=epoll", "-dispatch=inline"},
		{"-skip=Model_", "./eventloop", "-engine=epoll", "-dispatch=spawn"},
	}
	return inPairs(len(runs), func(i int) error {
		tests, err := v.goTest(ctx, log, []string{"."}, []string{"CGO_ENABLED=1"}, append([]string{packageTimeout, "-short"}, runs[i]...)...)
		if err == nil && tests == 0 {
			err = fmt.Errorf("no test ran with %q", runs[i])
		}
		return err
	})
}

// simulationSeeds is how many seeds `make test` gives each simulation.
const simulationSeeds = 2000

// simulation runs the tests called TestSimulation* of the root module with many
// seeds. Their packages define the flags -seeds and -seed.
func simulation(ctx context.Context, v *verifier, log *log) error {
	var packages []string
	err := v.eachFile(func(name string, content []byte) error {
		folder := "./" + path.Dir(name)
		if strings.HasSuffix(name, "_test.go") && bytes.Contains(content, []byte("\nfunc TestSimulation")) && !slices.Contains(packages, folder) {
			packages = append(packages, folder)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return fmt.Errorf("tests called TestSimulation*: %w", errAbsent)
	}
	arguments := slices.Concat([]string{"-run=^TestSimulation", "-count=1", packageTimeout}, packages, []string{fmt.Sprintf("-seeds=%d", simulationSeeds)})
	tests, err := v.goTest(ctx, log, []string{"."}, nil, arguments...)
	if err == nil && tests < simulationSeeds {
		return fmt.Errorf("only %d simulations ran", tests)
	}
	return err
}

// interop runs the module that talks to peers. The Go tests start them; what the
// peers count is part of the module's own tests.
func interop(ctx context.Context, v *verifier, log *log) error {
	if _, err := os.Stat(filepath.Join(v.root, interopModule, "go.mod")); err != nil {
		return fmt.Errorf("%s: %w", interopModule, errAbsent)
	}
	if v.python == "" {
		return errors.New("no Python interpreter given (-python)")
	}
	// More at a time than processors: most of them wait for a peer to start.
	tests, err := v.goTest(ctx, log, []string{interopModule}, nil, "-count=1", "-parallel=6", packageTimeout, "./...")
	if err == nil && tests == 0 {
		return errors.New("no interop test ran")
	}
	return err
}

// examples runs the demonstration, which checks its own output.
func examples(ctx context.Context, v *verifier, log *log) error {
	const module = "examples/orders"
	if _, err := os.Stat(filepath.Join(v.root, module, "cmd", "demo")); err != nil {
		return fmt.Errorf("%s/cmd/demo: %w", module, errAbsent)
	}
	err := v.command(ctx, log, module, "go", "run", "./cmd/demo", "-python", v.python, "-kitex", filepath.Join(v.root, "bin", "kitex-shop")).Run()
	result := "pass"
	if err != nil {
		result = "fail"
	}
	v.tally.add(module+" demo", result)
	if err != nil {
		return err
	}
	if err := v.command(ctx, log, "examples/gateway", "go", "run", "./cmd/demo").Run(); err != nil {
		return err
	}
	if err := v.command(ctx, log, "examples/fleet", "go", "run", ".", "-demo").Run(); err != nil {
		return err
	}
	return v.command(ctx, log, "examples/quotes", "go", "run", ".", "-demo", "-python", v.python).Run()
}
