package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/examples/fleet/gen/stock"
	"github.com/fulmar-rpc/fulmar/policy"
)

// firstPolicy is what the demo begins with.
//
//go:embed policy.json
var firstPolicy string

// brokenPolicy has two fields that are wrong.
const brokenPolicy = `{"client": {"retry": {"attempts": "many"}, "brake": {}}}`

// fleet is three servers, each a process, and a client.
type fleet struct {
	out io.Writer
	// log is what servers and client log, which is shown if something goes wrong.
	log            *os.File
	folder, policy string
	addresses      map[string]string
	running        map[string]*exec.Cmd
	client         *fulmar.Client
	api            stock.StockClient

	// calls counts those that the callers make, and failed those of them that failed.
	calls, failed atomic.Int64
	// retried is an explanation of a call that took more than one attempt.
	retried atomic.Pointer[string]

	mu sync.Mutex
	// served counts calls by the server that answered, first is the first failure.
	served map[string]int
	first  error
}

// run is the demo. It returns what was not as it should be.
func run(ctx context.Context, out io.Writer) (err error) {
	f := &fleet{out: out, addresses: map[string]string{}, running: map[string]*exec.Cmd{}, served: map[string]int{}}
	if f.folder, err = os.MkdirTemp("", "fulmar-fleet-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.end(err != nil)) }()
	if f.log, err = os.Create(filepath.Join(f.folder, "log")); err != nil {
		return err
	}
	f.policy = filepath.Join(f.folder, "policy.json")
	f.folder = filepath.Join(f.folder, "servers")
	if err := errors.Join(os.Mkdir(f.folder, 0o700), os.WriteFile(f.policy, []byte(firstPolicy), 0o600)); err != nil {
		return err
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := f.start(name); err != nil {
			return err
		}
	}
	if f.client, err = fulmar.NewClient(fulmar.ClientConfig{
		Target:     "file:///" + service,
		Registries: map[string]cluster.Registry{"file": cluster.Directory{Path: f.folder}},
		PolicyFile: f.policy,
		Logger:     slog.New(slog.NewTextHandler(f.log, nil)),
		// The first calls come before the first server.
		WaitForReady: true,
		// Each call is looked at here; a service would take one in a thousand.
		ExplainEvery: 1,
		OnExplanation: func(e *policy.Explanation) {
			if e.Len() > 1 && e.Code == 0 {
				text := e.String()
				f.retried.CompareAndSwap(nil, &text)
			}
		},
	}); err != nil {
		return err
	}
	f.api = stock.NewStockClient(f.client)
	return f.show(ctx)
}

// show goes through the scenes, while callers call.
func (f *fleet) show(ctx context.Context) error {
	calling, stop := context.WithCancel(ctx)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() { f.call(calling) })
	}
	var err error
	for _, scene := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"three servers are found in a folder, and share the calls", f.found},
		{"one is killed: its calls are made elsewhere, and it is left alone", f.killed},
		{"it is back: it gets its share again", f.back},
		{"one stops as it should: it takes itself out first", f.stopped},
		{"the policy changes while calls run; a wrong one changes nothing", f.changed},
	} {
		if err = scene.play(ctx); err != nil {
			err = fmt.Errorf("%s: %w", scene.title, err)
			break
		}
		fmt.Fprintf(f.out, "  ok  %s\n", scene.title)
	}
	stop()
	callers.Wait()
	if err == nil && f.failed.Load() > 0 {
		err = fmt.Errorf("%d calls failed, the first one with: %w", f.failed.Load(), f.first)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f.out, "  ok  all calls succeeded, also those that met a server when it was killed: for example\n      %s\n",
		strings.ReplaceAll(*f.retried.Load(), "\n", "\n      "))
	return nil
}

// call makes calls until ctx ends.
func (f *fleet) call(ctx context.Context) {
	for ctx.Err() == nil {
		answer, err := f.api.Left(ctx, "a red one")
		if ctx.Err() != nil {
			return
		}
		f.calls.Add(1)
		f.mu.Lock()
		if err == nil {
			f.served[answer.Server]++
		} else if f.failed.Add(1) == 1 {
			f.first = err
		}
		f.mu.Unlock()
	}
}

func (f *fleet) found(ctx context.Context) error { return f.share(ctx, "a", "b", "c") }

func (f *fleet) killed(ctx context.Context) error {
	if err := f.running["b"].Process.Kill(); err != nil {
		return err
	}
	_ = f.running["b"].Wait()
	delete(f.running, "b")
	if err := f.until(ctx, func() bool { return f.retried.Load() != nil && f.client.Stats().Ejected > 0 }); err != nil {
		return errors.New("no call was tried again, or the server is not left alone")
	}
	return f.share(ctx, "a", "c")
}

func (f *fleet) back(ctx context.Context) error {
	if err := f.start("b"); err != nil {
		return err
	}
	return f.share(ctx, "a", "b", "c")
}

func (f *fleet) stopped(ctx context.Context) error {
	if err := f.running["c"].Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := f.running["c"].Wait()
	delete(f.running, "c")
	if err != nil {
		return err
	}
	return f.share(ctx, "a", "b")
}

func (f *fleet) changed(ctx context.Context) error {
	second := strings.Replace(firstPolicy, `"attempts": 3`, `"attempts": 4`, 1)
	if err := f.replacePolicy(second); err != nil {
		return err
	}
	attempts := func() int { held, _, _ := f.client.Policy(); return held.Retry.Attempts }
	if err := f.until(ctx, func() bool { return attempts() == 4 }); err != nil {
		return errors.New("the client does not have the new policy")
	}
	if _, err := policy.ParseJSON([]byte(brokenPolicy)); err == nil || strings.Count(err.Error(), "\n") != 1 {
		return fmt.Errorf("of the wrong policy it was said: %w", err)
	}
	if err := f.replacePolicy(brokenPolicy); err != nil {
		return err
	}
	if err := f.until(ctx, func() bool { return f.client.Stats().PoliciesRefused > 0 }); err != nil {
		return errors.New("nobody has refused the wrong policy")
	}
	if n := attempts(); n != 4 {
		return fmt.Errorf("behind the wrong policy there are %d attempts", n)
	}
	return nil
}

// replacePolicy writes a file whole or not at all.
func (f *fleet) replacePolicy(text string) error {
	next := f.policy + ".next"
	return errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, f.policy))
}

// share waits until exactly these servers answer, each at least a quarter as often as the
// one that answers most.
func (f *fleet) share(ctx context.Context, names ...string) error {
	var counted map[string]int
	err := f.until(ctx, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		sum, most := 0, 0
		for _, n := range f.served {
			sum, most = sum+n, max(most, n)
		}
		if sum < 400 {
			return false
		}
		counted, f.served = f.served, map[string]int{}
		if len(counted) != len(names) {
			return false
		}
		for _, name := range names {
			if counted[name] < most/4 {
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("of the last calls the servers have answered %v, want %v", counted, names)
	}
	return nil
}

// until waits for something, half of the patience at most.
func (f *fleet) until(ctx context.Context, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience/2)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// start begins a server as a process of its own. One that was killed comes back where it was.
func (f *fleet) start(name string) error {
	if f.addresses[name] == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		f.addresses[name] = listener.Addr().String()
		if err := listener.Close(); err != nil {
			return err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.Command(program, "-serve", name, "-address", f.addresses[name], "-folder", f.folder, "-policy", f.policy)
	process.Env = append(os.Environ(), asServer+"=1")
	process.Stderr = f.log
	if err := process.Start(); err != nil {
		return err
	}
	f.running[name] = process
	return nil
}

// asServer is set where the program is one of the demo's servers: its test is another
// program, and must know.
const asServer = "FLEET_SERVER"

// end stops what runs, and shows the log of it if something went wrong.
func (f *fleet) end(wrong bool) error {
	var problems []error
	if f.client != nil {
		problems = append(problems, f.client.Close())
	}
	for _, process := range f.running {
		problems = append(problems, process.Process.Signal(syscall.SIGTERM), process.Wait())
	}
	if f.log != nil {
		problems = append(problems, f.log.Close())
		if log, err := os.ReadFile(f.log.Name()); wrong && err == nil {
			_, _ = f.out.Write(log)
		}
	}
	return errors.Join(append(problems, os.RemoveAll(filepath.Dir(f.policy)))...)
}
