package testkit_test

import (
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestBaseline_FindsWhatIsLeftBehind(t *testing.T) {
	tests := []struct {
		name  string
		leak  func(t *testing.T) (undo func())
		skip  bool
		wants string
	}{
		{
			name: "goroutine",
			leak: func(t *testing.T) func() {
				stop, stopped := make(chan struct{}), make(chan struct{})
				go leakedGoroutine(stop, stopped)
				return func() { close(stop); <-stopped }
			},
			wants: "leakedGoroutine",
		},
		{
			name: "file",
			leak: func(t *testing.T) func() {
				file, err := os.Create(t.TempDir() + "/left-open")
				if err != nil {
					t.Fatal(err)
				}
				return func() { file.Close() }
			},
			skip:  runtime.GOOS != "linux",
			wants: "left-open",
		},
		{
			name: "socket",
			leak: func(t *testing.T) func() {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				return func() { listener.Close() }
			},
			skip:  runtime.GOOS != "linux",
			wants: "1 still open: socket:",
		},
		{
			name: "pooled buffer",
			leak: func(t *testing.T) func() {
				pool := linkbuf.NewPool()
				b := pool.Get(1)
				return func() { pool.Put(b) }
			},
			skip:  !assert.Enabled,
			wants: "linkbuf: 1 slices not put back",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.skip {
				t.Skip("not observable in this build")
			}
			baseline := testkit.NewBaseline()
			undo := test.leak(t)
			err := baseline.Check(time.Millisecond)
			undo()
			if err == nil || !strings.Contains(err.Error(), test.wants) {
				t.Errorf("Check() = %v, want an error with %q", err, test.wants)
			}
			if err := baseline.Check(time.Minute); err != nil {
				t.Errorf("after the leak was closed: %v", err)
			}
		})
	}
}

func leakedGoroutine(stop, stopped chan struct{}) {
	<-stop
	close(stopped)
}

func TestBaseline_WaitsForWhatIsOnItsWayOut(t *testing.T) {
	baseline := testkit.NewBaseline()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	writer.Close()
	timer := time.AfterFunc(30*time.Millisecond, func() { reader.Close() })
	defer timer.Stop()
	if err := baseline.Check(time.Minute); err != nil {
		t.Errorf("Check() = %v", err)
	}
}

func TestBaseline_ReportsEverythingAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors can only be listed on Linux")
	}
	baseline := testkit.NewBaseline()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go leakedGoroutine(stop, stopped)
	file, err := os.Create(t.TempDir() + "/left-open")
	if err != nil {
		t.Fatal(err)
	}
	err = baseline.Check(time.Millisecond)
	file.Close()
	close(stop)
	<-stopped
	if err == nil || !strings.Contains(err.Error(), "leakedGoroutine") || !strings.Contains(err.Error(), "left-open") {
		t.Errorf("Check() = %v, want both leaks", err)
	}
}
