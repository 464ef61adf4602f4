package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const want = `client Greeter.greet: ["started" "picked" "encoded" "connected" "written" "first byte" "received" "decoded" "done"]
server Greeter.greet: ["started" "first byte" "received" "decoded" "handled" "encoded" "written" "done"]
level=WARN msg="call failed" side=server method=Greeter.greet code="invalid argument" executed=yes
level=WARN msg="call failed" side=client method=Greeter.greet code="invalid argument" executed=yes
client Greeter.greet: 3 calls, 2 good, 1 invalid argument, p99 known: true
server Greeter.greet: 3 calls, 2 good, 1 invalid argument, p99 known: true
`

// TestRun_TellsWhatHappens compares what the program writes. Which of the two sides
// ends first is open, so the lines are sorted.
func TestRun_TellsWhatHappens(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got := sorted(out.String()); got != sorted(want) {
		t.Errorf("the program wrote\n%s, want\n%s", got, sorted(want))
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
