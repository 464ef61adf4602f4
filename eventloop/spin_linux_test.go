package eventloop

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// scriptedSpinner is a spinner whose waits take what a test says.
type scriptedSpinner struct {
	spinner
	now time.Time
}

func newScripted(most time.Duration) *scriptedSpinner {
	return &scriptedSpinner{spinner{most: most, gap: 2 * most, budget: new(spinBudget)}, time.Now()}
}

// spins waits n times, each for took until there are events, and returns before how many of
// these waits it spun.
func (s *scriptedSpinner) spins(n int, took time.Duration, events int) (count int) {
	for range n {
		if s.worth(s.now) {
			count++
			s.tried(min(took, s.most), took <= s.most)
		}
		s.now = s.now.Add(took)
		s.waited(took, events)
	}
	return count
}

// TestSpinner_SpinsWhileEventsComeFast is a white-box test: when to spin is a
// matter of times, which only a script can give.
func TestSpinner_SpinsWhileEventsComeFast(t *testing.T) {
	s := newScripted(50 * time.Microsecond)
	if n := s.spins(200, 10*time.Microsecond, 1); n < 100 {
		t.Errorf("with events every 10 us it spins before %d of 200", n)
	}
	if n := s.spins(100, time.Second, 1); n > 10 {
		t.Errorf("with events every second it spins before %d of 100", n)
	}
	s.spins(200, 10*time.Microsecond, 1)
	if s.spins(1, time.Second, 1); s.spins(1, 10*time.Microsecond, 1) != 1 {
		t.Error("one long pause ends it")
	}
	if n := s.spins(200, 10*time.Microsecond, 10); n > 20 {
		t.Errorf("with ten events at a time it spins before %d of 200", n)
	}
	// Attempts fail, and waits are not much longer than they.
	s.spins(100, 70*time.Microsecond, 1)
	if n := s.spins(10*spinProbe, 70*time.Microsecond, 1); n != 10 {
		t.Errorf("where attempts fail it tries %d times before %d waits", n, 10*spinProbe)
	}
	if off := newScripted(0); off.spins(100, time.Microsecond, 1) != 0 {
		t.Error("it spins although it is off")
	}
}

// TestSpinner_BurstsWithPauses: where half of the waits are short it spins, whatever their
// mean says.
func TestSpinner_BurstsWithPauses(t *testing.T) {
	s := newScripted(30 * time.Microsecond)
	count := 0
	for range 1000 {
		count += s.spins(2, 5*time.Microsecond, 1) + s.spins(1, 110*time.Microsecond, 1)
	}
	if count < 1500 {
		t.Errorf("it spins before %d of 3,000 waits, of which 2,000 take 5 us", count)
	}
}

// TestSpinner_HasAShare: what it wastes is bounded, and what waiting would have taken is no
// waste.
func TestSpinner_HasAShare(t *testing.T) {
	s := newScripted(50 * time.Microsecond)
	window := func(took time.Duration) (spun time.Duration) {
		s.now = s.now.Add(spinWindow)
		return time.Duration(s.spins(int(spinWindow/took), took, 1)) * took
	}
	window(40 * time.Microsecond)
	if spun, least := window(40*time.Microsecond), spinShare; spun < least || spun > least*4/3+s.most {
		t.Errorf("with events every 40 us, of which 10 are no waste, it spins for %v in %v", spun, spinWindow)
	}
	if spun := window(10 * time.Microsecond); spun < spinWindow*9/10 {
		t.Errorf("with events every 10 us it spins for %v in %v", spun, spinWindow)
	}
}

// TestSpinner_PollersSpinAsConfigured: a client that asks at once for the next
// reply makes its poller spin, if there are several processors.
func TestSpinner_PollersSpinAsConfigured(t *testing.T) {
	for name, test := range map[string]struct {
		time  time.Duration
		spins bool
	}{"spins": {spinTimeMax, newSpinner(spinTimeMax, nil).most > 0}, "off": {-1, false}} {
		l, _ := serveInside(t, Config{SpinTime: test.time, Pollers: 1}, func(c *Conn) error {
			c.Writer().AppendString("r")
			return c.Reader().Skip(1)
		})
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		answer := make([]byte, 1)
		// How long it takes until the next request depends on what else the machine
		// does.
		for range 10000 {
			if l.Stats().Loop.Spins > 0 && test.spins {
				break
			}
			if _, err := client.Write(answer); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(client, answer); err != nil {
				t.Fatal(err)
			}
		}
		if loop := l.Stats().Loop; loop.Spins > 0 != test.spins {
			t.Errorf("%s: %d spins in %d wake-ups", name, loop.Spins, loop.Wakeups)
		}
	}
}

func TestSpinner_NotForLongOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := limits.SpinTimeAlone
	if quotaBelowOne() || onlyProcessor(onlineFile) {
		want = 0
	}
	if s := newSpinner(time.Millisecond, nil); s.most != want {
		t.Errorf("it would spin for %v, want %v", s.most, want)
	}
}

func TestOnlyProcessor_ReadsTheList(t *testing.T) {
	name := filepath.Join(t.TempDir(), "online")
	if !onlyProcessor(name) {
		t.Error("nobody knows, and it spins")
	}
	for list, want := range map[string]bool{"0\n": true, "3\n": true, "": true, "0-1\n": false, "0,2\n": false, "1-3,5\n": false} {
		if err := os.WriteFile(name, []byte(list), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := onlyProcessor(name); got != want {
			t.Errorf("%q: %v", list, got)
		}
	}
}

func TestBelowOne_ReadsControlGroups(t *testing.T) {
	for text, want := range map[string]bool{
		"50000 100000\n":  true,
		"99999 100000":    true,
		"100000 100000\n": false,
		"200000 100000\n": false,
		"max 100000\n":    false,
		"":                false,
		"50000":           false,
		"-1 100000":       false,
		"1e4 100000":      false,
		"1 2 3":           false,
	} {
		if got := belowOne(text); got != want {
			t.Errorf("belowOne(%q) = %v", text, got)
		}
	}
}

// TestGroupBelowOne_LooksAtTheGroupsAround: the quota that counts may be that of
// any of them, as of a slice of a service manager.
func TestGroupBelowOne_LooksAtTheGroupsAround(t *testing.T) {
	const half, two = "50000 100000\n", "200000 100000\n"
	for name, test := range map[string]struct {
		files      map[string]string // the quotas of groups
		membership string
		want       bool
	}{
		"its own":              {map[string]string{"a/b/c": half, "a": two}, "0::/a/b/c\n", true},
		"the next":             {map[string]string{"a/b/c": two, "a/b": half, "a": two}, "0::/a/b/c\n", true},
		"the outermost":        {map[string]string{"a/b/c": two, "a/b": "max 100000\n", "a": half}, "0::/a/b/c\n", true},
		"the root":             {map[string]string{"": half}, "0::/\n", true},
		"the root of others":   {map[string]string{"": half}, "0::/not/here\n", true},
		"none of its own":      {map[string]string{"a": two, "a/c": half, "b": half}, "0::/a/b\n", false},
		"none":                 {map[string]string{"a": two}, "0::/a\n", false},
		"the first version":    {map[string]string{"cpu/a": half}, "4:cpu:/a/b\n", true},
		"beside others":        {map[string]string{"cpu/a": half}, "11:memory:/\n4:cpu,cpuacct:/a\n", true},
		"enough of the first":  {map[string]string{"cpu/a": two, "cpu": "-1 100000"}, "4:cpu:/a\n", false},
		"another controller":   {map[string]string{"cpu/a": half}, "4:cpuset:/a\n", false},
		"a name":               {map[string]string{"a": half}, "1:name=systemd:/a\n", false},
		"both versions":        {map[string]string{"a": half}, "4:cpu:/\n0::/a\n", true},
		"outside of its root":  {map[string]string{"a": half}, "0::/../../a\n", true},
		"nothing":              {map[string]string{"": half}, "", false},
		"too deep to be heard": {map[string]string{"": half}, "0::" + strings.Repeat("/a", groupsMost) + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for group, quota := range test.files {
				if err := os.MkdirAll(filepath.Join(folder, group), 0o700); err != nil {
					t.Fatal(err)
				}
				content := map[string]string{"cpu.max": quota}
				if strings.HasPrefix(group, "cpu") {
					fields := strings.Fields(quota)
					content = map[string]string{"cpu.cfs_quota_us": fields[0] + "\n", "cpu.cfs_period_us": fields[1] + "\n"}
				}
				for file, text := range content {
					if err := os.WriteFile(filepath.Join(folder, group, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := groupBelowOne(folder, test.membership); got != test.want {
				t.Errorf("groupBelowOne = %v for %q with %q", got, test.membership, test.files)
			}
		})
	}
}
