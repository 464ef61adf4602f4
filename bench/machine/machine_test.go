package machine

import (
	"strings"
	"testing"
	"time"
)

func TestKeepAwakePeriod_StaysInStep(t *testing.T) {
	for _, c := range []struct{ period, want time.Duration }{
		{0, 20 * time.Microsecond},
		{-5, 20 * time.Microsecond},
		{1, 20 * time.Microsecond},
		{3 * time.Microsecond, 21 * time.Microsecond},
		{7 * time.Microsecond, 21 * time.Microsecond},
		{20 * time.Microsecond, 20 * time.Microsecond},
		{33 * time.Microsecond, 33 * time.Microsecond},
		{time.Hour, time.Millisecond},
	} {
		if got := keepAwakePeriod(c.period); got != c.want {
			t.Errorf("%v becomes %v, want %v", c.period, got, c.want)
		}
	}
}

func TestFacts_String(t *testing.T) {
	facts := Facts{System: "linux/amd64", Kernel: "6.1.0", Go: "go1.26.0", CPU: "Some CPU", Processors: 2, Virtual: true, MemoryBytes: 25_000_000_000}
	const want = "2 x Some CPU (virtual), 23 GiB, kernel 6.1.0, go1.26.0 linux/amd64"
	if got := facts.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	facts.SharedCore = true
	if got := facts.String(); !strings.Contains(got, "threads of one core") {
		t.Errorf("%q does not tell that the processors share a core", got)
	}
}
