package eventloop

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestSpinner_SpinsWhileEventsComeFast is a white-box test: when to spin is a
// matter of times, which only a bubble can give.
func TestSpinner_SpinsWhileEventsComeFast(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		s := spinner{most: 50 * time.Microsecond, gap: 100 * time.Microsecond}
		waits := func(n int, took time.Duration) {
			for range n {
				s.waited(took, 1)
			}
		}
		if waits(50, 30*time.Microsecond); !s.worth(time.Now()) {
			t.Error("events every 30 us are not worth it")
		}
		for range 50 {
			s.waited(30*time.Microsecond, 10)
		}
		if s.worth(time.Now()) {
			t.Error("ten events at a time are worth it")
		}
		waits(50, 30*time.Microsecond)
		if waits(1, time.Second); !s.worth(time.Now()) {
			t.Error("one long pause ends it")
		}
		if waits(50, time.Millisecond); s.worth(time.Now()) {
			t.Error("events every millisecond are worth it")
		}
		waits(50, 30*time.Microsecond)
		s.spent += spinShare
		if s.worth(time.Now()) {
			t.Error("it takes more than its share of a processor")
		}
		if time.Sleep(spinWindow); !s.worth(time.Now()) {
			t.Error("it has no share in the next window")
		}
		if off := (spinner{}); off.worth(time.Now()) {
			t.Error("it spins although it is off")
		}
	})
}

// TestSpinner_PollersSpinAsConfigured: a client that asks at once for the next
// reply makes its poller spin, if there are several processors.
func TestSpinner_PollersSpinAsConfigured(t *testing.T) {
	for name, test := range map[string]struct {
		time  time.Duration
		spins bool
	}{"spins": {spinTimeMax, newSpinner(spinTimeMax).most > 0}, "off": {-1, false}} {
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
	if s := newSpinner(time.Millisecond); s.most != want {
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
