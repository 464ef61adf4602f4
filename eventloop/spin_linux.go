package eventloop

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Waking a goroutine that waits for the network takes longer than most events
// take to come when there is traffic: 25 to 30 us on a virtual machine, where
// the processor has to be woken too. So a poller looks again for a while before
// it waits.

const (
	// spinWindow is over what spinning is bounded, spinShare how much of it one
	// poller may waste: a fifth of a processor, a tenth with a poller for two. All
	// dialled connections of a process together may waste as much.
	spinWindow = 100 * time.Millisecond
	spinShare  = spinWindow / 5

	// spinBatch is the mean number of events of a wait, in hundredths, up to which
	// spinning pays.
	spinBatch = 150

	// spinHits is the share of attempts, in parts of hitsAll, that have to bring an event.
	// Streams whose ends take turns come in bursts with pauses: half of their waits
	// are short, and the mean says nothing. With three quarters there was nothing to gain;
	// with half of them and with 40 % 1.2 times as many messages.
	spinHits = hitsAll * 2 / 5
	hitsAll  = 1 << 16

	// spinProbe is after how many waits one tries again where attempts have failed.
	spinProbe = 16

	// spinParkCost is what it takes of the processor to wait and to be woken. So much of an
	// attempt that brings an event is no waste.
	spinParkCost = 10 * time.Microsecond
)

// spinner decides whether it is worth while. One goroutine at a time.
type spinner struct {
	// most is how long one wait spins; 0 is never.
	most time.Duration
	// gap is the moving average of how long waits took, spinning included, and
	// batch that of how many events ended them, in hundredths.
	gap   time.Duration
	batch int
	// hits is the moving average of how many attempts brought an event, in parts of hitsAll;
	// refused is how many waits had none because these were few.
	hits, refused int
	budget        *spinBudget
}

// spinBudget bounds what is wasted. Safe for concurrent use.
type spinBudget struct {
	mu sync.Mutex
	// spent of the window that began at start.
	spent time.Duration
	start time.Time
}

// left reports whether not all is spent.
func (b *spinBudget) left(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.start) >= spinWindow {
		b.start, b.spent = now, 0
	}
	return b.spent < spinShare
}

func (b *spinBudget) spend(spun time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += max(0, spun)
}

func newSpinner(most time.Duration, budget *spinBudget) spinner {
	switch {
	case !spinsHere():
		most = 0
	case runtime.GOMAXPROCS(0) == 1:
		most = min(most, limits.SpinTimeAlone)
	}
	// The first waits tell how long they take.
	return spinner{most: most, gap: 2 * most, budget: budget}
}

// spinsHere reports whether others can run while somebody spins. It is asked for each
// connection of a client, and what it reads takes 50 us.
var spinsHere = sync.OnceValue(func() bool { return !quotaBelowOne() && !onlyProcessor(onlineFile) })

// worth reports whether the next event is likely to come while spinning.
func (s *spinner) worth(now time.Time) bool {
	if s.most == 0 {
		return false
	}
	// Not where many events come at once: there is no time to win then, and peers on this
	// machine need the processor. With 64 connections spinning took a quarter more
	// of it for each request and gave no more of them.
	if s.batch > spinBatch {
		return false
	}
	if s.hits >= spinHits {
		return s.budget.left(now)
	}
	// Twice, because whoever waits notices an event late by as much.
	if s.gap <= 2*s.most {
		s.refused++
	}
	if s.refused < spinProbe {
		return false
	}
	s.refused = 0
	return s.budget.left(now)
}

// tried records for how long one wait has spun, and whether that brought an event.
func (s *spinner) tried(spun time.Duration, hit bool) {
	s.hits -= s.hits / 8
	if hit {
		s.hits += hitsAll / 8
		spun -= spinParkCost
	}
	s.budget.spend(spun)
}

// waited records how long a wait took, and how many events ended it.
func (s *spinner) waited(took time.Duration, events int) {
	s.batch += (100*events - s.batch) / 8
	// One long pause between two bursts should not end it, many should.
	took = min(took, 8*s.most)
	s.gap += (took - s.gap) / 8
}

// onlineFile is where Linux lists the processors that run, such as "0-7".
const onlineFile = "/sys/devices/system/cpu/online"

// onlyProcessor reports whether the machine has one processor, or nobody knows: peers on it
// could not run while somebody spins.
func onlyProcessor(name string) bool {
	list, err := os.ReadFile(name)
	return err != nil || !strings.ContainsAny(string(list), "-,")
}

// groupsMost bounds how many control groups, each in the next, are looked at.
const groupsMost = 64

// quotaBelowOne reports whether the process may use less than one processor,
// by Linux's control groups.
func quotaBelowOne() bool {
	membership, err := os.ReadFile("/proc/self/cgroup")
	return err == nil && groupBelowOne("/sys/fs/cgroup", string(membership))
}

// groupBelowOne is quotaBelowOne for the groups in a folder and what is in
// /proc/self/cgroup: lines "0::/group" of the second version, "4:cpu,cpuacct:/group"
// of the first. The smallest quota of a group and of those around it counts. A
// container sees its own group, or one further out, as the root.
func groupBelowOne(folder, membership string) bool {
	for line := range strings.Lines(membership) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		quota := quotaOfSecond
		root := folder
		switch controllers := strings.Split(fields[1], ","); {
		case slices.Contains(controllers, "cpu"):
			quota, root = quotaOfFirst, filepath.Join(folder, "cpu") // a link, where it has others beside
		case fields[0] != "0" || fields[1] != "":
			continue
		}
		group := path.Clean("/" + fields[2]) // the root at most, whatever it says
		for range groupsMost {
			if belowOne(quota(filepath.Join(root, group))) {
				return true
			}
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	return false
}

// quotaOfSecond and quotaOfFirst return quota and period of a control group, as
// belowOne reads it. The first version has them in two files, -1 for no quota.
func quotaOfSecond(group string) string { return contentOf(group, "cpu.max") }

func quotaOfFirst(group string) string {
	return contentOf(group, "cpu.cfs_quota_us") + " " + contentOf(group, "cpu.cfs_period_us")
}

func contentOf(folder, file string) string {
	// What cannot be read says nothing.
	content, _ := os.ReadFile(filepath.Join(folder, file))
	return string(content)
}

// belowOne reads a line such as "50000 100000": microseconds of processor time,
// or "max", in each period.
func belowOne(text string) bool {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return false
	}
	quota, err := strconv.ParseUint(fields[0], 10, 63)
	period, periodErr := strconv.ParseUint(fields[1], 10, 63)
	return err == nil && periodErr == nil && quota < period
}
