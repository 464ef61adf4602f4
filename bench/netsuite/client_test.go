//go:build linux

package netsuite

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/harness"
)

// build compiles programs in C and returns the folder that they are in.
func build(t *testing.T, programs ...harness.Program) string {
	t.Helper()
	folder := t.TempDir()
	if err := harness.Build(t.Context(), "../..", harness.Suite{Programs: programs}, folder, os.Stderr); err != nil {
		t.Fatal(err)
	}
	return folder
}

// client compiles the client. The function that it returns runs it against an
// address, with this process as the server.
func client(t *testing.T) func(address string, arguments ...string) contestant.Report {
	t.Helper()
	binary := filepath.Join(build(t, Suite().Client), "net-client")
	return func(address string, arguments ...string) contestant.Report {
		t.Helper()
		arguments = append([]string{"load", "-address", address, "-server", strconv.Itoa(os.Getpid()), "-warm-up", "0s", "-duration", "30ms"}, arguments...)
		command := exec.CommandContext(t.Context(), binary, arguments...)
		command.Stderr = os.Stderr
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%q: %v", arguments, err)
		}
		event, err := contestant.ParseEvent(output)
		if err != nil || event.Report == nil {
			t.Fatalf("%s: %v, want a report", output, err)
		}
		return *event.Report
	}
}

// server answers each request with what change makes of it and how many came
// before; nil closes the connection. It returns its address.
func server(t *testing.T, change func(n int, frame []byte) []byte) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	n := 0
	answer := func(conn net.Conn) {
		defer conn.Close()
		reader := bufio.NewReader(conn)
		for {
			head, err := reader.Peek(LengthBytes)
			if err != nil {
				return
			}
			size, err := FrameBytes(head)
			if err != nil {
				return
			}
			frame := make([]byte, size)
			if _, err := io.ReadFull(reader, frame); err != nil {
				return
			}
			mu.Lock()
			reply := change(n, frame)
			n++
			mu.Unlock()
			if reply == nil {
				return
			}
			if _, err := conn.Write(reply); err != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { answer(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return listener.Addr().String()
}

// A server that is wrong once, in any way, makes the run fail, and the report
// says how.
func TestClient_NoticesWrongReplies(t *testing.T) {
	load := client(t)
	flip := func(at int) func([]byte) []byte {
		return func(frame []byte) []byte {
			frame[(at+len(frame))%len(frame)] ^= 1
			return frame
		}
	}
	var previous []byte
	pipelined := []string{"-connections", "4", "-callers", "4"}
	churn := []string{"-connections", "4", "-churn", "1", "-sources", "4"}
	for name, c := range map[string]struct {
		wrong     func(frame []byte) []byte
		arguments []string
		complaint string
	}{
		"first byte":       {flip(headerBytes), pipelined, "differ from the request"},
		"last byte":        {flip(-1), pipelined, "differ from the request"},
		"flags":            {flip(headerBytes - 1), pipelined, "flags"},
		"length":           {flip(LengthBytes - 1), pipelined, "wrong reply"},
		"another caller":   {flip(LengthBytes + 3), pipelined, "no call with the id"},
		"another call":     {flip(LengthBytes + 7), pipelined, "no call with the id"},
		"the reply before": {func([]byte) []byte { return previous }, pipelined, "no call with the id"},
		"content of the reply before": {func(frame []byte) []byte {
			return append(frame[:headerBytes:headerBytes], previous[headerBytes:]...)
		}, pipelined, "differ from the request"},
		"twice":          {func(frame []byte) []byte { return append(frame, frame...) }, pipelined, "no call with the id"},
		"none":           {func(frame []byte) []byte { return []byte{} }, pipelined, "1 replies are missing"},
		"half":           {func(frame []byte) []byte { return frame[:len(frame)/2] }, []string{"-connections", "4"}, "1 replies are missing"},
		"the end":        {func([]byte) []byte { return nil }, pipelined, "reading a reply|writing a request"},
		"more for churn": {func(frame []byte) []byte { return append(frame, 0) }, churn, "1 bytes behind it"},
		"large":          {flip(1 << 17), []string{"-connections", "4", "-bytes", strconv.Itoa(1 << 18)}, "differ from the request"},
	} {
		for _, rate := range []string{"0", "5000"} {
			address := server(t, func(n int, frame []byte) []byte {
				if n == 3 {
					return c.wrong(frame)
				}
				previous = frame
				return frame
			})
			report := load(address, append([]string{"-patience", "100ms", "-duration", "100ms", "-rate", rate}, c.arguments...)...)
			if matched, err := regexp.MatchString(c.complaint, report.Failure); report.Failed == 0 || !matched || err != nil {
				t.Errorf("%s, rate %s: %d failed with %q, want %q", name, rate, report.Failed, report.Failure, c.complaint)
			}
		}
	}
}

// Failures before the window count as well.
func TestClient_NoticesWhatFailsBeforeTheWindow(t *testing.T) {
	load := client(t)
	for name, c := range map[string]struct {
		change    func(n int, frame []byte) []byte
		arguments []string
		complaint string
	}{
		"first messages": {func(_ int, frame []byte) []byte { frame[len(frame)-1]++; return frame }, []string{"-first-bytes", "100000"}, "differ"},
		"no first reply": {func(int, []byte) []byte { return []byte{} }, []string{"-first-bytes", "100000"}, "missing before the warm-up"},
		"idle":           {func(int, []byte) []byte { return nil }, []string{"-idle", "10"}, "asking for memory"},
	} {
		report := load(server(t, c.change), append(c.arguments, "-patience", "100ms")...)
		if report.Failed == 0 || report.Calls != 0 || !strings.Contains(report.Failure, c.complaint) {
			t.Errorf("%s: %d calls, %d failed with %q, want %q", name, report.Calls, report.Failed, report.Failure, c.complaint)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, churn := range []string{"0", "1"} {
		if report := load(address, "-churn", churn); report.Failed == 0 || !strings.Contains(report.Failure, "refused") {
			t.Errorf("churn %s, without a server: %d failed with %q", churn, report.Failed, report.Failure)
		}
	}
}

// The server sees what the case asks for: ids of every caller, contents that
// differ, flags in about the share that was wanted, and connections from several
// addresses.
func TestClient_SendsWhatItWasTold(t *testing.T) {
	load := client(t)
	// So many calls have eight contents in common with others on average: there
	// are 16,384 of them.
	const observed = 500
	var slept, burnt, all int
	contents := map[string]bool{}
	address := server(t, func(_ int, frame []byte) []byte {
		all++
		if Blocks(frame) {
			slept++
		} else if frame[headerBytes-1]&flagBurn != 0 {
			burnt++
		}
		if all <= observed {
			contents[string(frame[headerBytes:])] = true
		}
		return frame
	})
	report := load(address, "-connections", "8", "-callers", "2", "-bytes", "1000", "-sleep-share", "5000", "-burn-share", "2500")
	if report.Failed > 0 || report.Calls == 0 {
		t.Fatalf("%d calls, %d failed: %s", report.Calls, report.Failed, report.Failure)
	}
	// One of some hundred calls cannot be far from its share: these are eight
	// standard deviations for 500 calls.
	if all > 500 && (slept < all*3/10 || slept > all*7/10 || burnt < all/10 || burnt > all*4/10) {
		t.Errorf("%d and %d of %d calls had flags, want a half and a quarter", slept, burnt, all)
	}
	if slept == 0 || burnt == 0 || len(contents) < min(all, observed)*8/10 {
		t.Errorf("%d calls had %d contents, %d and %d flags", all, len(contents), slept, burnt)
	}
}

// An open loop gives every call that fell due a latency, also those that nobody
// was free to make.
func TestClient_OpenLoopCountsWhatItMissed(t *testing.T) {
	load := client(t)
	echo := server(t, func(_ int, frame []byte) []byte { return Handle(frame) })
	report := load(echo, "-connections", "8", "-rate", "100", "-duration", "500ms")
	if report.Due != 50 || report.Latency.Count != 50 || report.Missed != 0 || report.Failed != 0 {
		t.Errorf("%d calls due, %d missed, %d latencies, %d failed (%s); want 50, 0, 50 and 0", report.Due, report.Missed, report.Latency.Count, report.Failed, report.Failure)
	}
	// Each call sleeps for 2 ms, so that one caller can make 60 at most until the
	// end of the time that late ones have.
	report = load(echo, "-rate", "10000", "-duration", "60ms", "-sleep-share", "10000")
	if report.Due != 600 || report.Latency.Count != 600 || report.Missed < 540 || report.Failed != 0 {
		t.Errorf("%d calls due, %d missed, %d latencies, %d failed (%s); want 600, 540 or more, 600 and 0",
			report.Due, report.Missed, report.Latency.Count, report.Failed, report.Failure)
	}
	if report.Latency.Max < int64(50*time.Millisecond) {
		t.Errorf("the longest latency is %v, although calls waited to the end", time.Duration(report.Latency.Max))
	}
}

func TestClient_RefusesWhatItDoesNotKnow(t *testing.T) {
	binary := filepath.Join(build(t, Suite().Client), "net-client")
	for name, arguments := range map[string][]string{
		"no command":         nil,
		"other command":      {"serve"},
		"no address":         {"load"},
		"bad address":        {"load", "-address", "nowhere"},
		"name":               {"load", "-address", "localhost:1"},
		"port":               {"load", "-address", "127.0.0.1:65536"},
		"long path":          {"load", "-address", "/" + strings.Repeat("x", 200)},
		"unknown option":     {"load", "-address", "127.0.0.1:1", "-speed", "1"},
		"no value":           {"load", "-address", "127.0.0.1:1", "-bytes"},
		"no bytes":           {"load", "-address", "127.0.0.1:1", "-bytes", "0"},
		"negative":           {"load", "-address", "127.0.0.1:1", "-bytes", "-1"},
		"many bytes":         {"load", "-address", "127.0.0.1:1", "-bytes", strconv.Itoa(PayloadMax + 1)},
		"no unit":            {"load", "-address", "127.0.0.1:1", "-duration", "1"},
		"no time":            {"load", "-address", "127.0.0.1:1", "-duration", "0s"},
		"days":               {"load", "-address", "127.0.0.1:1", "-duration", "100h"},
		"rate":               {"load", "-address", "127.0.0.1:1", "-rate", "fast"},
		"nobody's process":   {"load", "-address", "127.0.0.1:1", "-server", "-5"},
		"churn of pipelines": {"load", "-address", "127.0.0.1:1", "-churn", "1", "-callers", "2"},
	} {
		var complaint bytes.Buffer
		command := exec.CommandContext(t.Context(), binary, arguments...)
		command.Stderr = &complaint
		if output, err := command.Output(); err == nil || complaint.Len() == 0 {
			t.Errorf("%s: no error, printed %q and %q", name, output, complaint.String())
		}
	}
}

// The histogram in C finds the percentiles that the other suites' finds.
func TestHistogram_AgreesWithHdrHistogram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "histogram")
	if output, err := exec.CommandContext(t.Context(), "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I../net", "-o", binary, "testdata/histogram.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func(i int) int64{
		"one":        func(int) int64 { return 77 },
		"ascending":  func(i int) int64 { return int64(i) },
		"exact":      func(int) int64 { return random.Int64N(2048) },
		"micro":      func(int) int64 { return 20_000 + random.Int64N(100_000) },
		"wide":       func(int) int64 { return int64(1) << random.IntN(36) },
		"long tails": func(int) int64 { return int64(10_000 / (1 - random.Float64())) },
	} {
		want := hdrhistogram.New(1, int64(100*time.Second), 3)
		var values strings.Builder
		const n = 5000
		for i := range n {
			value := min(draw(i), int64(100*time.Second))
			if err := want.RecordValue(value); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&values, value)
		}
		command := exec.CommandContext(t.Context(), binary)
		command.Stdin = strings.NewReader(values.String())
		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		var count, p50, p99, p999, most int64
		if _, err := fmt.Sscan(string(output), &count, &p50, &p99, &p999, &most); err != nil {
			t.Fatalf("%q: %v", output, err)
		}
		near := func(got, want int64) bool { return got-want <= want/500+1 && want-got <= want/500+1 }
		if count != n || !near(p50, want.ValueAtQuantile(50)) || !near(p99, want.ValueAtQuantile(99)) || !near(p999, want.ValueAtQuantile(99.9)) || !near(most, want.Max()) {
			t.Errorf("%s: %s, want %d %d %d %d %d", name, output, n, want.ValueAtQuantile(50), want.ValueAtQuantile(99), want.ValueAtQuantile(99.9), want.Max())
		}
	}
}

// floor starts c-epoll and returns its address.
func floor(t *testing.T) string {
	t.Helper()
	command := exec.Command(filepath.Join(build(t, harness.Program{Module: "bench", Package: "net/server.c"}), "net-server"), "serve")
	command.Stderr = os.Stderr
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
	t.Cleanup(func() {
		// It ends by itself when its input does.
		if err := input.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("c-epoll ended with %v", err)
		}
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	event, err := contestant.ParseEvent(line)
	if err != nil || event.Ready == nil {
		t.Fatalf("%s: %v, want an address", line, err)
	}
	return event.Ready.Address
}

// The floor is a server of its own, so it is tested as one: requests cut
// anywhere, of all lengths, from a client that reads late.
func TestFloor_AnswersHoweverRequestsArrive(t *testing.T) {
	address := floor(t)
	random := rand.New(rand.NewPCG(3, 4))
	for _, largest := range []int{40, 3000, 1 << 20} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var sent []byte
		for range 40 {
			payload := make([]byte, random.IntN(largest))
			for i := range payload {
				payload[i] = byte(random.Uint32())
			}
			sent = append(sent, request(0, payload)...)
		}
		written := make(chan error, 1)
		go func() {
			// Pieces of at most so many bytes that there are some hundred.
			for rest := sent; len(rest) > 0; {
				piece := min(1+random.IntN(len(sent)/100+1), len(rest))
				if _, err := conn.Write(rest[:piece]); err != nil {
					written <- err
					return
				}
				rest = rest[piece:]
			}
			written <- nil
		}()
		if largest < 1<<20 {
			// All is written before anything is read.
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			written <- nil
		}
		got := make([]byte, len(sent))
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("up to %d bytes: read %d of %d, %v", largest, n, len(sent), err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

// What is no frame ends its connection, and no other.
func TestFloor_RefusesWhatIsNoFrame(t *testing.T) {
	address := floor(t)
	other, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, head := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 8}, {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff, 1, 2, 3}} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		good := request(0, []byte("before"))
		if _, err := conn.Write(append(bytes.Clone(good), head...)); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(conn) // The end may come as a reset.
		if len(got) > 0 && !bytes.Equal(got, good) {
			t.Errorf("%x: got %x", head, got)
		}
	}
	good := request(flagSleep, []byte("still here"))
	if _, err := other.Write(good); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(good))
	if _, err := io.ReadFull(other, got); err != nil || !bytes.Equal(got, good) {
		t.Errorf("another connection: %x, %v", got, err)
	}
}
