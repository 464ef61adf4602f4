//go:build linux

package contestant

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// mirror answers every byte with itself. Its client writes a byte and wants it
// back, or after ten calls another one than it gets.
func mirror(name string, correct bool) Contestant {
	return Contestant{
		Name: name,
		Serve: func(ctx context.Context, listener net.Listener, _ Played) error {
			stop := context.AfterFunc(ctx, func() { listener.Close() })
			defer stop()
			// The function above may still be on its way when this one returns, and the
			// next server of this process wants the same name of a Unix socket.
			defer listener.Close()
			conn, err := listener.Accept()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.Copy(conn, conn)
			<-ctx.Done()
			return err
		},
		Load: func(address string, _ Played) (Load, error) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return Load{}, err
			}
			n := 0
			return Load{Close: conn.Close, Calls: []loadgen.Call{func() error {
				n++
				got, want := make([]byte, 1), []byte{byte(n)}
				if _, err := conn.Write(want); err != nil {
					return err
				}
				if _, err := io.ReadFull(conn, got); err != nil {
					return err
				}
				if got[0] != want[0] || !correct && n > 10 {
					return errors.New("wrong\nreply")
				}
				return nil
			}}}, nil
		},
	}
}

// start runs the command serve, and returns the server's address and what ends
// it.
func start(t *testing.T, c Contestant, arguments ...string) (address string, stop func() error) {
	t.Helper()
	in, closer := io.Pipe()
	lines, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- run(t.Context(), []Contestant{c}, append([]string{"serve", "-contestant", c.Name, "-case", "any"}, arguments...), in, out)
		out.Close()
	}()
	reader := bufio.NewReader(lines)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		t.Fatalf("no event: %v", errors.Join(err, <-served))
	}
	event, err := ParseEvent(line)
	if err != nil || event.Ready == nil {
		t.Fatalf("%s: %v, want an address", line, err)
	}
	return event.Ready.Address, func() error {
		closer.Close()
		return <-served
	}
}

func loadOnce(t *testing.T, c Contestant, arguments ...string) Report {
	t.Helper()
	address, stop := start(t, c)
	var out strings.Builder
	err := run(t.Context(), []Contestant{c}, append([]string{"load", "-contestant", c.Name, "-case", "any", "-address", address,
		"-server", strconv.Itoa(os.Getpid()), "-warm-up", "10ms", "-duration", "100ms"}, arguments...), nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	event, err := ParseEvent([]byte(out.String()))
	if err != nil || event.Report == nil {
		t.Fatalf("%s: %v, want a report", out.String(), err)
	}
	if err := stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	return *event.Report
}

func TestRun_MeasuresClosedAndOpenLoops(t *testing.T) {
	for _, rate := range []string{"0", "200"} {
		report := loadOnce(t, mirror("mirror", true), "-rate", rate)
		if report.Calls == 0 || report.Seconds <= 0 || report.Failed != 0 {
			t.Errorf("rate %s: %d calls in %v s, %d failed (%s)", rate, report.Calls, report.Seconds, report.Failed, report.Failure)
		}
		if report.ServerCPU <= 0 || report.ClientCPU <= 0 || report.ServerPeak <= 0 || report.ClientPeak <= 0 {
			t.Errorf("rate %s: processor times and memory are missing: %+v", rate, report)
		}
		if rate != "0" && (report.Due != 20 || report.Latency.Count != 20) {
			t.Errorf("rate %s: %d calls due and %d latencies, want 20 in 100 ms", rate, report.Due, report.Latency.Count)
		}
	}
}

// TestRun_TakesTurns: what is reported of the time is the part that was its own.
func TestRun_TakesTurns(t *testing.T) {
	report := loadOnce(t, mirror("mirror", true), "-slice", "10ms", "-turn", "2", "-turns", "4")
	// 100 ms are made three rounds of four turns, of which one is its own.
	if report.Calls == 0 || report.Failed != 0 || report.Seconds < 0.03 || report.Seconds >= 0.1 {
		t.Errorf("%d calls in %v s, %d failed (%s), want 30 ms", report.Calls, report.Seconds, report.Failed, report.Failure)
	}
}

func TestRun_ReportsWrongReplies(t *testing.T) {
	report := loadOnce(t, mirror("mirror", false))
	if report.Failed == 0 || report.Failure != "wrong reply" {
		t.Errorf("%d failed, the first with %q, want the client's complaint in one line", report.Failed, report.Failure)
	}
}

// Whether the program or the library listens, the runner learns where.
func TestRun_TellsWhereItListens(t *testing.T) {
	byItself := mirror("by itself", true)
	serve := byItself.Serve
	byItself.Serve = nil
	byItself.ServeAddress = func(ctx context.Context, network, address, name string, ready func(string) error) error {
		listener, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		return errors.Join(ready(listener.Addr().String()), serve(ctx, listener, Played{Case: name}))
	}
	for _, c := range []Contestant{mirror("mirror", true), byItself} {
		for network, prefix := range map[string]string{"tcp": "127.0.0.1:", "unix": "@"} {
			address, stop := start(t, c, "-network", network)
			if !strings.HasPrefix(address, prefix) {
				t.Errorf("%s listens on %q for %s, want something that begins with %q", c.Name, address, network, prefix)
			}
			conn, err := net.Dial(network, address)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(conn.Close(), stop()); err != nil {
				t.Errorf("%s, %s: %v", c.Name, network, err)
			}
		}
	}
}

func TestRun_TellsWhyALibraryCannotListen(t *testing.T) {
	inUse := errors.New("the address is in use")
	c := Contestant{Name: "own", ServeAddress: func(context.Context, string, string, string, func(string) error) error { return inUse }}
	in, closer := io.Pipe()
	defer closer.Close()
	var out strings.Builder
	err := run(t.Context(), []Contestant{c}, []string{"serve", "-contestant", "own", "-case", "any"}, in, &out)
	if !errors.Is(err, inUse) || out.Len() > 0 {
		t.Errorf("%v, printed %q; want the library's error", err, out.String())
	}
	// The pipe's reader goroutine ends with its input.
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
}

func TestRun_RefusesWhatItDoesNotKnow(t *testing.T) {
	gone := Contestant{Name: "gone", Unavailable: "not built"}
	own := Contestant{Name: "own", ServeAddress: func(context.Context, string, string, string, func(string) error) error { return nil }}
	for name, arguments := range map[string][]string{
		"no command":         nil,
		"unknown command":    {"dance", "-contestant", "mirror"},
		"unknown flag":       {"serve", "-speed", "1"},
		"unknown contestant": {"serve", "-contestant", "other"},
		"not available":      {"serve", "-contestant", "gone"},
		"no server":          {"load", "-contestant", "mirror", "-address", "127.0.0.1:1"},
		"bad address":        {"serve", "-contestant", "mirror", "-address", "nowhere"},
		"bad network":        {"serve", "-contestant", "mirror", "-network", "udp"},
		"no client":          {"load", "-contestant", "own"},
		"turns of no length": {"load", "-contestant", "mirror", "-address", "127.0.0.1:1", "-turns", "2"},
	} {
		var out strings.Builder
		if err := run(t.Context(), []Contestant{mirror("mirror", true), gone, own}, arguments, strings.NewReader(""), &out); err == nil {
			t.Errorf("%s: no error, printed %q", name, out.String())
		}
	}
}

func TestRun_Info(t *testing.T) {
	var out strings.Builder
	contestants := []Contestant{{Name: "a", Modules: []string{"golang.org/x/sys"}}, {Name: "b", Unavailable: "not built"}}
	if err := run(t.Context(), contestants, []string{"info"}, nil, &out); err != nil {
		t.Fatal(err)
	}
	event, err := ParseEvent([]byte(out.String()))
	if err != nil || len(event.Info) != 2 || event.Info[0].Name != "a" || event.Info[1].Unavailable != "not built" {
		t.Errorf("%s: %v", out.String(), err)
	}
}

func TestPrintable_FitsIntoAReport(t *testing.T) {
	for _, text := range []string{"plain", "two\nlines\x1b[2J", "\xff\xfe", strings.Repeat("é", 10*failureMax)} {
		if err := CheckText("text", printable(text), 1); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
		if len(printable(text)) > failureMax {
			t.Errorf("%.20q: %d bytes, want at most %d", text, len(printable(text)), failureMax)
		}
	}
}

func TestProfile_IsWrittenIntoTheFolder(t *testing.T) {
	folder := t.TempDir()
	for _, test := range []struct {
		folder string
		files  int
		fails  bool
	}{{"", 0, false}, {filepath.Join(folder, "absent"), 0, true}, {folder, 1, false}} {
		end, err := profile(test.folder, "ours", "mux", "client")
		if (err != nil) != test.fails {
			t.Fatalf("folder %q: %v", test.folder, err)
		}
		if err == nil {
			err = end()
		}
		if err != nil != test.fails {
			t.Errorf("folder %q: %v", test.folder, err)
		}
		found, err := filepath.Glob(filepath.Join(folder, "ours-mux-client.pprof"))
		if err != nil || len(found) != test.files {
			t.Errorf("folder %q: files %q, %v", test.folder, found, err)
		}
	}
}
