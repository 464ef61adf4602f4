// Package machine is what the benchmark asks of the machine it runs on: who it
// is, what processes cost, and quiet places to run them in.
package machine

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Facts describe a machine as far as results depend on it. They do not tell
// which machine it is.
type Facts struct {
	System     string `json:"system"` // "linux/amd64"
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	// SharedCore tells whether the processors used for pinned runs share a core.
	SharedCore  bool  `json:"shared_core"`
	Virtual     bool  `json:"virtual"`
	MemoryBytes int64 `json:"memory_bytes"`
}

// Describe returns what can be found out; what cannot stays empty.
func Describe() Facts {
	facts := Facts{
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
		Processors: runtime.NumCPU(),
	}
	facts.ask()
	return facts
}

// String is one line for a table's heading.
func (f Facts) String() string {
	kind := ""
	if f.Virtual {
		kind = " (virtual)"
	}
	if f.SharedCore {
		kind += " (threads of one core)"
	}
	return fmt.Sprintf("%d x %s%s, %d GiB, kernel %s, %s %s",
		f.Processors, f.CPU, kind, int64(math.Round(float64(f.MemoryBytes)/(1<<30))), f.Kernel, f.Go, f.System)
}

// ErrUnsupported is returned where only Linux can do what was asked for.
var ErrUnsupported = errors.New("this needs Linux")

// keepAwakeMin bounds what KeepAwake costs, keepAwakeMax how late it is.
const (
	keepAwakeMin = 20 * time.Microsecond
	keepAwakeMax = time.Millisecond
)

// keepAwakePeriod rounds a period to what KeepAwake does.
func keepAwakePeriod(period time.Duration) time.Duration {
	if period < keepAwakeMin {
		// A multiple, so that the ticks stay in step with what they announce.
		period = max(period, 1) * ((keepAwakeMin + max(period, 1) - 1) / max(period, 1))
	}
	return min(period, keepAwakeMax)
}
