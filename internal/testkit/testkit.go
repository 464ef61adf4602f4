// Package testkit is what the tests of all packages share: a TestMain that
// fails when something outlives its owner, and golden files.
//
// Only tests import it.
package testkit

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// leakPatience is how long Main waits for what is on its way out: goroutines
// that were told to stop, descriptors that another goroutine is closing. A
// package without leaks never waits, but on a busy machine. It is less than the 30 s after
// which clients that nobody has closed let go of their connections.
const leakPatience = 20 * time.Second

// Main runs the tests of a package and exits. When they pass it looks for
// goroutines, temporary files, file descriptors (on Linux) and pooled buffers
// (with -tags invariants) that they left behind, and fails if there are any. Use
// it as
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
func Main(m *testing.M) {
	flag.Bool(updateFlag, false, "rewrite golden files with what the tests got")
	os.Exit(run(m.Run, os.Stderr, leakPatience))
}

func run(tests func() int, output io.Writer, patience time.Duration) int {
	if fuzzing() {
		return tests()
	}
	temporary, err := newTempFolder()
	if err != nil {
		fmt.Fprintf(output, "FAIL: %v\n", err)
		return 1
	}
	defer temporary.remove()
	baseline := NewBaseline()
	if code := tests(); code != 0 {
		return code
	}
	if err := errors.Join(baseline.Check(patience), temporary.check()); err != nil {
		fmt.Fprintf(output, "FAIL: the tests passed, but left something behind:\n%v\n", err)
		return 1
	}
	return 0
}

// fuzzing tells whether this process coordinates or executes fuzzing. Its
// pipes to other processes, and what keeps them running, are not ours.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}
