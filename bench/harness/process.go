package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/machine"
)

const (
	// startTimeout is how long a program may take to listen, or to say what it
	// can do; a loaded machine needs a second.
	startTimeout = 15 * time.Second
	// overtime is how much longer than its windows a run may take: it connects
	// first, and an open loop that cannot keep up takes up to another window.
	overtime = 30 * time.Second
	// profilesVariable is the environment variable with the folder into which clients and
	// servers write where their processor time goes while they make as many calls as they
	// can; see docs/guide/where-time-goes.md.
	profilesVariable = "FULMAR_BENCH_PROFILES"
	// controlDescriptor is the file descriptor that a program gets of the first of
	// exec.Cmd's ExtraFiles.
	controlDescriptor = 3

	// waitDelay is how long a program's pipes may stay open after its end.
	waitDelay = 2 * time.Second
)

// turn is one run that is asked for.
type turn struct {
	contestant string
	played     Case
	placement  Placement
	rate       float64
	settings   Settings
	// index of so many contestants that take turns within one window; of is 0 without.
	index, of int
}

// length is how long a run takes at most.
func (t turn) length() time.Duration {
	return time.Duration(max(t.of, 1))*(t.settings.WarmUp+2*t.settings.Duration+2*t.settings.Slice) + overtime
}

// outcome is what came of one turn.
type outcome struct {
	report contestant.Report
	err    error
}

// play starts a server and a client that calls it for each turn, all at the same time, and
// returns what the clients report, and how many processors others have kept busy meanwhile.
func (r *runner) play(ctx context.Context, turns ...turn) (outcomes []outcome, others float64, err error) {
	begun := time.Now()
	before, err := machine.Busy()
	if err != nil {
		return nil, 0, err
	}
	outcomes = make([]outcome, len(turns))
	used := make([]time.Duration, len(turns))
	var group sync.WaitGroup
	for i, t := range turns {
		group.Go(func() { outcomes[i].report, used[i], outcomes[i].err = r.playPair(ctx, t) })
	}
	group.Wait()
	after, err := machine.Busy()
	if err != nil {
		return nil, 0, err
	}
	for _, own := range used {
		after -= own
	}
	return outcomes, max((after-before).Seconds()/time.Since(begun).Seconds(), 0), nil
}

// playPair also returns the processor time of both processes over their lives.
func (r *runner) playPair(ctx context.Context, t turn) (report contestant.Report, used time.Duration, err error) {
	binary, ok := r.roster(t.played.Repeats).binaries[t.contestant]
	if !ok {
		return report, 0, fmt.Errorf("suite %s: no program knows %q", r.suite.Name, t.contestant)
	}
	name, before := unmarked(t.contestant)
	common := []string{"-contestant", name, "-case", t.played.Name}
	// Profiles are named after contestants, so those of an earlier build would take the others' place.
	if folder := os.Getenv(profilesVariable); folder != "" && !before && t.rate == 0 && r.suite.Client.Package == "" {
		common = append(common, "-profiles", folder)
	}
	if t.played.Certificate {
		common = append(common, "-certificate", r.certificate)
	}
	window := []string{"-warm-up", t.settings.WarmUp.String(), "-duration", t.settings.Duration.String()}
	if t.of > 0 {
		// Each has as much time of its own as it would have alone.
		all := time.Duration(t.of)
		window = []string{"-warm-up", (all * t.settings.WarmUp).String(), "-duration", (all * t.settings.Duration).String(),
			"-slice", t.settings.Slice.String(), "-turn", strconv.Itoa(t.index), "-turns", strconv.Itoa(t.of)}
	}
	if t.played.Repeats {
		return r.playAlone(ctx, t, binary, slices.Concat([]string{"repeat"}, common, window))
	}
	if t.played.Local {
		rate := []string{"-rate", strconv.FormatFloat(t.rate, 'f', 3, 64)}
		return r.playAlone(ctx, t, binary, slices.Concat([]string{"load"}, common, rate, window, t.played.Load))
	}
	asked, asking, err := machine.Sockets()
	if err != nil {
		return report, 0, err
	}
	defer asking.Close() // for when there will be no client
	if r.suite.Client.Package == "" {
		common = append(common, "-control", strconv.Itoa(controlDescriptor))
	}
	server, err := r.start(ctx, t.placement, 0, asked, binary, slices.Concat([]string{"serve"}, common, t.played.Serve)...)
	if err != nil {
		return report, 0, fmt.Errorf("server of %s: %w", t.contestant, err)
	}
	defer func() { used += server.stop() }()
	ready, err := server.event(ctx, startTimeout)
	if err != nil || ready.Ready == nil {
		return report, 0, fmt.Errorf("server of %s is not ready: %w", t.contestant, unexpected(err))
	}
	if r.suite.Client.Package != "" {
		binary = filepath.Join(r.options.Binaries, r.suite.Client.binary())
	}
	client, err := r.start(ctx, t.placement, 1, asking, binary, slices.Concat([]string{"load"}, common, []string{
		"-address", ready.Ready.Address,
		"-server", strconv.Itoa(server.command.Process.Pid),
		"-rate", strconv.FormatFloat(t.rate, 'f', 3, 64),
	}, window, t.played.Load)...)
	if err != nil {
		return report, 0, fmt.Errorf("client of %s: %w", t.contestant, err)
	}
	defer func() { used += client.stop() }()
	reported, err := client.event(ctx, t.length())
	if err != nil || reported.Report == nil {
		return report, 0, fmt.Errorf("client of %s: %w", t.contestant, unexpected(err))
	}
	return *reported.Report, 0, nil
}

// playAlone is playPair for a contestant that needs one process only: it repeats an
// operation, or calls itself.
func (r *runner) playAlone(ctx context.Context, t turn, binary string, arguments []string) (report contestant.Report, used time.Duration, err error) {
	alone, err := r.start(ctx, t.placement, 0, nil, binary, arguments...)
	if err != nil {
		return report, 0, fmt.Errorf("%s: %w", t.contestant, err)
	}
	defer func() { used += alone.stop() }()
	reported, err := alone.event(ctx, t.length())
	if err != nil || reported.Report == nil {
		return report, 0, fmt.Errorf("%s: %w", t.contestant, unexpected(err))
	}
	return *reported.Report, 0, nil
}

// unexpected stands for an event of the wrong kind.
func unexpected(err error) error {
	if err == nil {
		return errors.New("it printed another event than it was asked for")
	}
	return err
}

// process is a program that runs.
type process struct {
	command *exec.Cmd
	input   io.Closer
	events  <-chan result
}

type result struct {
	event contestant.Event
	err   error
}

// start starts a program. side is 0 for the server and 1 for the client: pinned,
// each has a processor of its own. The program gets control as a file, which start
// closes, unless it is nil.
func (r *runner) start(ctx context.Context, placement Placement, side int, control *os.File, binary string, arguments ...string) (*process, error) {
	command := exec.CommandContext(ctx, binary, arguments...)
	if control != nil {
		command.ExtraFiles = []*os.File{control}
		defer control.Close()
	}
	command.Stderr = r.log
	command.Env = os.Environ()
	command.WaitDelay = waitDelay
	// Whatever happens to this process, what it started ends when its input does.
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if placement == Pinned {
		command.Env = append(command.Env, "GOMAXPROCS=1")
		err = machine.On(r.processors[side], command.Start)
	} else {
		err = command.Start()
	}
	if err != nil {
		return nil, err
	}
	return &process{command: command, input: input, events: readEvents(output, r.log)}, nil
}

// readEvents reads lines until the output ends. What is no event goes to log.
// The channel holds one result; the reader goes on behind it, so that no
// program ever waits for this one to read.
func readEvents(output io.Reader, log io.Writer) <-chan result {
	events := make(chan result, 1)
	go func() {
		found := false
		deliver := func(r result) {
			if !found {
				events <- r
			}
			found = true
		}
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, contestant.LineMax+1)
		for lines.Scan() {
			event, err := contestant.ParseEvent(lines.Bytes())
			if errors.Is(err, contestant.ErrNotEvent) {
				fmt.Fprintf(log, "%s\n", lines.Bytes())
				continue
			}
			deliver(result{event, err})
		}
		if err := lines.Err(); err != nil {
			deliver(result{err: fmt.Errorf("reading its output: %w", err)})
			_, _ = io.Copy(io.Discard, output)
		}
		deliver(result{err: errors.New("it ended without a result")})
	}()
	return events
}

// event waits for the program's event.
func (p *process) event(ctx context.Context, timeout time.Duration) (contestant.Event, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r := <-p.events:
		return r.event, r.err
	case <-timer.C:
		return contestant.Event{}, fmt.Errorf("no result after %v", timeout)
	case <-ctx.Done():
		return contestant.Event{}, ctx.Err()
	}
}

// stop ends the program and returns its processor time. Nothing that it could
// still do counts, so it is not asked twice.
func (p *process) stop() time.Duration {
	_ = p.input.Close()
	ended := make(chan struct{})
	go func() {
		_ = p.command.Wait()
		close(ended)
	}()
	if os.Getenv(profilesVariable) != "" {
		select { // it has something to write
		case <-ended:
		case <-time.After(waitDelay):
		}
	}
	_ = p.command.Process.Kill()
	<-ended
	if p.command.ProcessState == nil {
		return 0
	}
	return p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime()
}

// ask runs the command info of a program.
func (r *runner) ask(ctx context.Context, binary string) ([]contestant.Info, error) {
	asked, err := r.start(ctx, Free, 0, nil, binary, "info")
	if err != nil {
		return nil, err
	}
	defer asked.stop()
	answer, err := asked.event(ctx, startTimeout)
	if err != nil || answer.Info == nil {
		return nil, fmt.Errorf("%s info: %w", binary, unexpected(err))
	}
	return answer.Info, nil
}
