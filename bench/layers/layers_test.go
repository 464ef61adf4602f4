package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestLayerOf_TakesTheNearestOfOurs(t *testing.T) {
	const root = "github.com/fulmar-rpc/fulmar"
	for _, test := range []struct {
		want  string
		stack []string
	}{
		{"codec", []string{"encoding/binary.bigEndian.Uint32", root + "/thrift.(*Reader).String", root + "/bench/gen/echo.(*Message).ReadThrift", root + ".(*Client).Call", "main.main"}},
		{"garbage collector", []string{"runtime.scanobject", "runtime.gcAssistAlloc", "runtime.mallocgc", root + "/thrift.(*Reader).String"}},
		{"memory: allocating", []string{"runtime.nextFreeFast", "runtime.mallocgc", root + "/thrift.(*Reader).String"}},
		{"memory: copying, clearing", []string{"runtime.memmove", root + "/internal/transport.(*muxConn).outcome"}},
		{"system calls: writing", []string{"internal/runtime/syscall/linux.Syscall6", "syscall.Syscall", "golang.org/x/sys/unix.writev", root + "/eventloop.(*outbound).tryWrite"}},
		{"system calls: waiting", []string{"internal/runtime/syscall/linux.Syscall6", "internal/runtime/syscall/linux.EpollWait", "runtime.netpoll", "runtime.findRunnable"}},
		{"system calls: waiting", []string{"internal/runtime/syscall/linux.Syscall6", "syscall.Syscall", "golang.org/x/sys/unix.Nanosleep", root + "/eventloop.(*leader).pause"}},
		{"scheduler", []string{"runtime.casgstatus", "runtime.schedule", "runtime.park_m", "runtime.mcall"}},
		{"framing", []string{root + "/internal/wire/ttheader.Next", root + "/internal/transport.(*muxConn).read"}},
		{"connections", []string{"sync.(*Mutex).Lock", root + "/internal/transport.(*muxConn).add"}},
		{"dispatch", []string{"time.Now", root + ".(*Client).Call", "main.main"}},
		{"caller and handler", []string{"strings.Repeat", "main.main"}},
		{otherLayer, []string{"runtime.main"}},
		{otherLayer, nil},
	} {
		if got := layerOf(allLayers(), test.stack); got != test.want {
			t.Errorf("%v is in %q, want %q", test.stack, got, test.want)
		}
	}
}

func TestWrite_SharesAreOfEachProfile(t *testing.T) {
	var out bytes.Buffer
	codec, other := []string{"github.com/fulmar-rpc/fulmar/thrift.F"}, []string{"x"}
	if err := write(&out, []column{{"a", []sample{{codec, 3}, {other, 1}}}, {"b", nil}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for _, want := range []string{"| layer | a | b |", "|---|--:|--:|", "| codec | 75.0 % | 0.0 % |", "| other | 25.0 % | 0.0 % |"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}
	if got := top([]sample{{codec, 3}, {other, 1}}, "codec", 5); len(got) != 1 || got[0].nanos != 3 {
		t.Errorf("top: %v", got)
	}
}

func TestRun_ReadsProfiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pprof")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		t.Fatal(err)
	}
	pprof.StopCPUProfile()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{name}, &out); err != nil || !strings.HasPrefix(out.String(), "| layer | a |") {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, bad := range [][]string{nil, {name + "x"}, {os.Args[0]}, {"-no"}} {
		if run(bad, &out) == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
