package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ask fills in what Linux tells.
func (f *Facts) ask() {
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		f.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(text)), "-")
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		f.CPU, f.Virtual = readProcessor(string(text))
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if kilobytes, err := readField(text, "MemTotal:"); err == nil {
			f.MemoryBytes = kilobytes << 10
		}
	}
	if server, client, err := Pair(); err == nil {
		f.SharedCore = server != client && core(server) != "" && core(server) == core(client)
	}
}

// readProcessor reads /proc/cpuinfo. Processors other than x86 do not say
// whether there is a hypervisor.
func readProcessor(text string) (model string, virtual bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			return model, strings.Contains(" "+strings.TrimSpace(value)+" ", " hypervisor ")
		}
	}
	return model, false
}

// readField reads "name  123 kB" from a file of /proc and returns 123.
func readField(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		if words := strings.Fields(string(line)); len(words) >= 2 && words[0] == name {
			return strconv.ParseInt(words[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("no line %q", name)
}

// core names the physical core of a processor, or is empty.
func core(processor int) string {
	folder := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/", processor)
	id, err := os.ReadFile(folder + "core_id")
	if err != nil {
		return ""
	}
	socket, err := os.ReadFile(folder + "physical_package_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(socket)) + "." + strings.TrimSpace(string(id))
}

// Load returns the load average of the last minute.
func Load() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// Busy returns how long the machine's processors together have worked since it
// was started, whoever they worked for, to a hundredth of a second.
func Busy() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return readBusy(string(text))
}

// readBusy adds up the first line of /proc/stat, in hundredths of a second:
// user, nice, system, idle, waiting, interrupts, soft interrupts, stolen by
// other guests. Later fields are contained in these.
func readBusy(text string) (time.Duration, error) {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	const idle, waiting, stolen = 4, 5, 8
	if len(words) <= stolen || words[0] != "cpu" {
		return 0, fmt.Errorf("no processor times in %.40q", line)
	}
	var busy int64
	for i := 1; i <= stolen; i++ {
		ticks, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return 0, err
		}
		if i != idle && i != waiting {
			busy += ticks
		}
	}
	return time.Duration(busy) * 10 * time.Millisecond, nil
}

// ProcessTime returns the processor time of a process and all threads that it
// ever had, exact to the nanosecond. It is the kernel's clock of that process,
// so the process need not help.
func ProcessTime(process int) (time.Duration, error) {
	if process <= 0 {
		return 0, fmt.Errorf("%d is not a process id", process)
	}
	// The id of another process's clock, as clock_getcpuclockid(3) makes it.
	const scheduled = 2
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^process<<3|scheduled), &now); err != nil {
		return 0, err
	}
	return time.Duration(now.Nano()), nil
}

// PeakMemory returns the most memory that a process has had resident, in bytes.
func PeakMemory(process int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return 0, err
	}
	kilobytes, err := readField(text, "VmHWM:")
	return kilobytes << 10, err
}

// Sockets returns two files that are connected with each other, for a process
// each. Reads from them block a thread.
func Sockets() (a, b *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("pair of sockets: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control"), nil
}

// Pair returns a processor for the server and one for the client: the first two
// that this process may use, of different cores if there are such.
func Pair() (server, client int, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0, 0, err
	}
	var usable []int
	for i := range len(allowed) * 64 {
		if allowed.IsSet(i) {
			usable = append(usable, i)
		}
	}
	if len(usable) < 2 {
		return 0, 0, fmt.Errorf("%d processors may be used, want one for the server and one for the client", len(usable))
	}
	for _, other := range usable[1:] {
		if core(other) != core(usable[0]) {
			return usable[0], other, nil
		}
	}
	return usable[0], usable[1], nil
}

// On calls start while the calling thread is bound to one processor. Processes
// that start begins stay bound to it.
func On(processor int, start func() error) error {
	runtime.LockOSThread()
	var before, only unix.CPUSet
	only.Set(processor)
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("binding to processor %d: %w", processor, err)
	}
	err := start()
	if restoreErr := unix.SchedSetaffinity(0, &before); restoreErr != nil {
		// A thread that stays locked ends with its goroutine, so nobody inherits
		// the binding.
		return errors.Join(err, restoreErr)
	}
	runtime.UnlockOSThread()
	return err
}

// KeepAwake makes the process look at its timers at start and every period
// after it. An idle Go process waits for the network with a timeout in whole
// milliseconds, so a timer that is due earlier may fire a millisecond late:
// more than the latencies that an open loop is there to measure. A kernel timer
// wakes it in time. Periods below 20 us become multiples of themselves.
func KeepAwake(start time.Time, period time.Duration) (stop func(), err error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// A little late, so that the timers it is for are due.
	const late = 2 * time.Microsecond
	first := now.Nano() + max(int64(time.Until(start)+late), 1)
	spec := unix.ItimerSpec{
		Value:    unix.NsecToTimespec(first),
		Interval: unix.NsecToTimespec(int64(keepAwakePeriod(period))),
	}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("timer: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timer")
	var group sync.WaitGroup
	group.Go(func() {
		var ticks [8]byte
		for {
			if _, err := timer.Read(ticks[:]); err != nil {
				return
			}
		}
	})
	return func() {
		timer.Close()
		group.Wait()
	}, nil
}
