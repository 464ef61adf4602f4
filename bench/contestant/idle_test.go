//go:build linux

package contestant

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// The connections are memory that this process keeps.
func TestIdle_MeasuresConnectionsAndWakesAll(t *testing.T) {
	// 20 MB, because the memory of the process itself moves by 100 kB meanwhile:
	// stacks of goroutines that earlier tests needed are given back.
	const connections, each = 200, 100_000
	server, end := pair(t, nil)
	kept := make([][]byte, connections)
	woken := make([]atomic.Int64, connections)
	var active atomic.Int64
	report, err := idle(Load{
		Calls: []loadgen.Call{func() error { active.Add(1); return nil }},
		Idle:  connections,
		Connect: func(number int) (loadgen.Call, error) {
			kept[number] = make([]byte, each)
			return func() error { woken[number].Add(1); return nil }, nil
		},
	}, loadOptions{server: os.Getpid(), duration: time.Millisecond}, server)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed != 0 || report.Calls != connections || report.Latency.Count != connections || active.Load() != idleWarmUp {
		t.Errorf("%+v after %d calls of the active caller, want one call of %d", report, active.Load(), connections)
	}
	if report.ConnectionBytes == nil {
		t.Error("the report does not say what a connection costs")
	} else if got := *report.ConnectionBytes; got < each*9/10 || got > 2*each {
		t.Errorf("%v bytes for a connection, want about %d", got, each)
	}
	for i := range woken {
		if woken[i].Load() != 2 {
			t.Fatalf("connection %d was used %d times, want when it was made and when it woke up", i, woken[i].Load())
		}
	}
	if len(kept[0]) != each {
		t.Error("what a connection keeps is gone")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestIdle_ReportsFailures(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		connect func(int) (loadgen.Call, error)
		failed  uint64
		err     error
	}{
		"no connection": {func(int) (loadgen.Call, error) { return nil, refused }, 0, refused},
		"first call":    {func(int) (loadgen.Call, error) { return func() error { return refused }, nil }, 0, refused},
		"waking up": {func() func(int) (loadgen.Call, error) {
			return func(number int) (loadgen.Call, error) {
				used := false
				return func() error {
					if used && number < 3 {
						return refused
					}
					used = true
					return nil
				}, nil
			}
		}(), 3, nil},
	} {
		server, end := pair(t, nil)
		report, err := idle(Load{Idle: 100, Connect: c.connect}, loadOptions{server: os.Getpid()}, server)
		if !errors.Is(err, c.err) || report.Failed != c.failed || (c.failed > 0 && report.Failure != "refused") {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if _, err := idle(Load{Idle: 1}, loadOptions{}, nil); err == nil || !strings.Contains(err.Error(), "-control") {
		t.Errorf("%v, want that there is no control", err)
	}
}
