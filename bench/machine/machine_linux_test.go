package machine

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDescribe_KnowsThisMachine(t *testing.T) {
	facts := Describe()
	if facts.Kernel == "" || facts.Processors < 1 || facts.MemoryBytes < 1<<20 || facts.Go == "" {
		t.Errorf("%+v lacks what every Linux tells", facts)
	}
	if load, err := Load(); err != nil || load < 0 {
		t.Errorf("load average %v, %v", load, err)
	}
}

func TestReadProcessor(t *testing.T) {
	for name, c := range map[string]struct {
		text, model string
		virtual     bool
	}{
		"guest":   {"processor\t: 0\nmodel name\t: A B @ 2 GHz\nflags\t\t: fpu hypervisor sse\n", "A B @ 2 GHz", true},
		"metal":   {"processor\t: 0\nmodel name\t: C\nflags\t\t: fpu nohypervisor\n", "C", false},
		"arm64":   {"processor\t: 0\nBogoMIPS\t: 1\nFeatures\t: fp\n", "", false},
		"nothing": {"", "", false},
	} {
		if model, virtual := readProcessor(c.text); model != c.model || virtual != c.virtual {
			t.Errorf("%s: %q, %v, want %q, %v", name, model, virtual, c.model, c.virtual)
		}
	}
}

func TestReadBusy(t *testing.T) {
	got, err := readBusy("cpu  100 20 30 4000 500 6 7 8 9000 10000\ncpu0 1 2 3 4\n")
	if want := 1710 * time.Millisecond; err != nil || got != want {
		t.Errorf("%v, %v, want %v: neither idle nor waiting, nor guests twice", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"} {
		if got, err := readBusy(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
	if busy, err := Busy(); err != nil || busy <= 0 {
		t.Errorf("this machine has worked for %v, %v", busy, err)
	}
}

func TestReadField(t *testing.T) {
	text := []byte("VmPeak:\t  9 kB\nVmHWM:\t  123 kB\nVmRSS:\nThreads:\tmany\n")
	if got, err := readField(text, "VmHWM:"); err != nil || got != 123 {
		t.Errorf("%d, %v, want 123", got, err)
	}
	for _, name := range []string{"VmRSS:", "Threads:", "VmNo:"} {
		if got, err := readField(text, name); err == nil {
			t.Errorf("%s is %d, want an error", name, got)
		}
	}
}

// The clock of another process shows what it has used, and goes on while it
// works: a shell that counts uses more than one that waits.
func TestProcessTime_OfAnotherProcess(t *testing.T) {
	command := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; read end")
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	used, err := ProcessTime(command.Process.Pid)
	if err != nil || used <= 0 {
		t.Errorf("processor time %v, %v, want some", used, err)
	}
	peak, err := PeakMemory(command.Process.Pid)
	if err != nil || peak <= 0 {
		t.Errorf("memory %d, %v, want some", peak, err)
	}
	input.Close()
	if err := command.Wait(); err == nil {
		t.Error("read at the end of input succeeded")
	}
	// The kernel's own account of the process, which is coarser, agrees.
	if total := command.ProcessState.UserTime() + command.ProcessState.SystemTime(); used > total+20*time.Millisecond {
		t.Errorf("processor time %v while it ran, but %v at its end", used, total)
	}
	for _, process := range []int{-1, 0, command.Process.Pid} {
		if used, err := ProcessTime(process); err == nil {
			t.Errorf("process %d has used %v, want an error", process, used)
		}
		if peak, err := PeakMemory(process); err == nil {
			t.Errorf("process %d has had %d bytes, want an error", process, peak)
		}
	}
}

// What On starts may run on that processor only, and the test itself wherever
// it could before.
func TestOn_BindsWhatItStarts(t *testing.T) {
	allowed := func(text []byte) string {
		_, list, _ := strings.Cut(string(text), "Cpus_allowed_list:")
		list, _, _ = strings.Cut(strings.TrimSpace(list), "\n")
		return list
	}
	status := func() []byte {
		text, err := os.ReadFile("/proc/thread-self/status")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := allowed(status())
	server, client, err := Pair()
	if err != nil {
		t.Skip(err)
	}
	if server == client {
		t.Errorf("server and client both have processor %d", server)
	}
	for _, processor := range []int{server, client} {
		command := exec.Command("cat", "/proc/self/status")
		var output strings.Builder
		command.Stdout = &output
		if err := On(processor, command.Start); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := allowed([]byte(output.String())); got != strconv.Itoa(processor) {
			t.Errorf("started on processor %d, may run on %q", processor, got)
		}
	}
	if after := allowed(status()); after != before {
		t.Errorf("this thread may run on %q, before on %q", after, before)
	}
	if err := On(1<<20, func() error { return nil }); err == nil {
		t.Error("a processor that does not exist was accepted")
	}
}

func TestKeepAwake_Ends(t *testing.T) {
	// TestMain looks for the goroutine and the descriptor.
	for _, period := range []time.Duration{0, time.Microsecond, time.Hour} {
		stop, err := KeepAwake(time.Now(), period)
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
}

func TestSockets_AreConnected(t *testing.T) {
	a, b, err := Sockets()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteString("across"); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b); string(got) != "across" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
