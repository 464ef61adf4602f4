package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a server that runs as a process of its own.
type process struct {
	Address string
	command *exec.Cmd
	// input is kept open as long as it may live; output is behind its first line.
	input  io.WriteCloser
	output *bufio.Reader
	// ended is closed when it has, with err.
	ended chan struct{}
	err   error
}

// start runs a server. prefix is a command that runs it, such as taskset with its
// flags. environment has variables for it.
func start(r role, environment []string, prefix ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startCommand(r, environment, append(prefix[:len(prefix):len(prefix)], self)...)
}

// startCommand is start for a command that may be another one than this.
func startCommand(r role, environment []string, words ...string) (*process, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.Command(words[0], words[1:]...), ended: make(chan struct{})}
	p.command.Env = append(append(os.Environ(), roleVariable+"="+string(text)), environment...)
	p.command.Stderr = os.Stderr
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	p.output = bufio.NewReader(output)
	line, err := p.output.ReadString('\n')
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("the server said nothing: %w", err)
	}
	p.Address = strings.TrimSpace(line)
	return p, nil
}

// ask has the process do what a line says, and returns the line that it answers with.
func (p *process) ask(line string, within time.Duration) ([]byte, error) {
	late := time.AfterFunc(within, p.kill)
	defer late.Stop()
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		return nil, err
	}
	return p.output.ReadBytes('\n')
}

// signal sends a signal to this process and no other.
func (p *process) signal(s syscall.Signal) { _ = p.command.Process.Signal(s) }

// stop asks it to stop gracefully, and returns how long that took.
func (p *process) stop(within time.Duration) (time.Duration, error) {
	start := time.Now()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		_ = p.input.Close()
		return time.Since(start), p.err
	case <-time.After(within):
		p.kill()
		return time.Since(start), fmt.Errorf("the server did not stop within %v", within)
	}
}

// kill ends it at once. Without effect on one that has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	_ = p.input.Close()
}

// pid returns its id.
func (p *process) pid() int { return p.command.Process.Pid }

// residentBytes returns how much memory it has.
func (p *process) residentBytes() int64 { return statusBytes(p.pid(), "VmRSS:") }

// peakBytes returns the most that it ever had.
func (p *process) peakBytes() int64 { return statusBytes(p.pid(), "VmHWM:") }

func statusBytes(pid int, key string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == key {
			n, _ := strconv.ParseInt(words[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// share is what a process got of its processor.
type share struct {
	at time.Time
	// ran is how long it ran, kept how long it could have and others did.
	ran, kept time.Duration
}

// share returns it since the start of the process.
func (p *process) share() share { return shareOf(p.pid()) }

func shareOf(pid int) share {
	now := share{at: time.Now()}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, thread.Name()))
		if words := strings.Fields(string(text)); len(words) == 3 {
			ran, _ := strconv.ParseInt(words[0], 10, 64)
			kept, _ := strconv.ParseInt(words[1], 10, 64)
			now.ran += time.Duration(ran)
			now.kept += time.Duration(kept)
		}
	}
	return now
}

// since returns how long one processor was the process's to use, run or idle, and
// which part of the time others had it.
func (s share) since(before share) (usable time.Duration, taken float64) {
	elapsed, ran := s.at.Sub(before.at), s.ran-before.ran
	// Threads of one process wait for each other too, which takes nothing from it.
	usable = max(elapsed-(s.kept-before.kept), ran)
	return usable, 1 - float64(usable)/float64(elapsed)
}

// busyMachine looks how much of the time others have the processors, by how late a
// goroutine that wants to run every millisecond gets to. Its result ends that.
func busyMachine() (taken func() float64) {
	begin, quit, ended := time.Now(), make(chan struct{}), make(chan struct{})
	var late time.Duration
	go func() {
		defer close(ended)
		for last := time.Now(); ; {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
			now := time.Now()
			// Timers are up to a millisecond late by themselves.
			late += max(now.Sub(last)-2*time.Millisecond, 0)
			last = now
		}
	}()
	return func() float64 {
		close(quit)
		<-ended
		return float64(late) / float64(time.Since(begin))
	}
}

// descriptors returns how many it has open.
func (p *process) descriptors() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid()))
	return len(entries)
}

// pinned runs f with all threads of this process on one processor.
func pinned(processor int, f func() error) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	after.Set(processor)
	set := func(to *unix.CPUSet) {
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			_ = unix.SchedSetaffinity(id, to)
		}
	}
	set(&after)
	err = f()
	threads, _ = os.ReadDir("/proc/self/task")
	set(&before)
	return err
}

// scratch returns a folder for the files of a scenario, and what removes it.
func scratch() (folder func(name string) string, remove func(), err error) {
	path, err := os.MkdirTemp("", "fulmar-chaos-")
	if err != nil {
		return nil, nil, err
	}
	return func(name string) string { return filepath.Join(path, name) }, func() { _ = os.RemoveAll(path) }, nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
