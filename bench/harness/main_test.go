package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// TestMain runs the tests, or plays a contestant: the test program is linked
// under the name of the one that it shall be.
func TestMain(m *testing.M) {
	if kind, ok := strings.CutPrefix(filepath.Base(os.Args[0]), fakePrefix); ok {
		playFake(kind, os.Args[1])
		return
	}
	testkit.Main(m)
}

const fakePrefix = "fake-"

// named is what a fake calls itself, and what it does. One from another tree has the same name
// and is slow.
func named(kind string) (name, does string) {
	if name, before := unmarked(kind); before {
		return name, "slow"
	}
	return kind, kind
}

// playFake is a contestant of that kind.
func playFake(kind, command string) {
	name, kind := named(kind)
	const report = `{"report":{"calls":%d,"seconds":2,"rate":0,"failed":%d,"failure":"%s","server_cpu_ns":5000,"client_cpu_ns":4000,` +
		`"server_peak_bytes":1000000,"client_peak_bytes":2000000,` +
		`"latency_ns":{"count":9,"mean":10,"p50":10,"p90":20,"p99":30,"p999":40,"max":50}}}` + "\n"
	switch command {
	case "info":
		fmt.Printf(`{"info":[{"name":"%s"},{"name":"gone","unavailable":"not built"}]}`+"\n", name)
	case "serve":
		switch kind {
		case "deaf":
			os.Exit(3)
		case "garbled":
			fmt.Println(`{"ready":{}}`)
		default:
			fmt.Println("a library says hello")
			fmt.Println(`{"ready":{"address":"127.0.0.1:1"}}`)
		}
		_, _ = os.Stdin.Read(make([]byte, 1))
	case "repeat":
		const operation = `{"report":{"calls":0,"seconds":2,"rate":0,"server_cpu_ns":0,"client_cpu_ns":0,"server_peak_bytes":3000000,"client_peak_bytes":0,` +
			`"latency_ns":{"count":0,"mean":0,"p50":0,"p90":0,"p99":0,"p999":0,"max":0},"operation":{"count":10,"nanoseconds":%d,"allocations":0.5,"bytes":16}}}` + "\n"
		switch kind {
		case "good":
			fmt.Printf(operation, 250)
		case "idle":
			fmt.Printf(report, 200, 0, "") // Calls, where operations were asked for.
		case "crash":
			os.Exit(4)
		default:
			fmt.Printf(operation, 500)
		}
	case "load":
		switch kind {
		case "client":
			// It tells in its report what it was told.
			arguments := strings.Join(os.Args, " ")
			if !strings.Contains(arguments, "-contestant good -case a -address 127.0.0.1:1 ") || !strings.HasSuffix(arguments, " -bytes 128") {
				fmt.Printf(report, 100, 1, arguments)
				return
			}
			fmt.Printf(report, 300, 0, "")
		case "first", "second":
			fmt.Printf(report, 100, untoldOfTurns(), "")
		case "alone":
			if arguments := strings.Join(os.Args, " "); strings.Contains(arguments, "-server") || strings.Contains(arguments, "-control") {
				fmt.Printf(report, 100, 1, "it was told of a server")
				return
			}
			fmt.Printf(report, 400, 0, "")
		case "crash":
			os.Exit(4)
		case "liar":
			fmt.Printf(report, 100, 7, "the reply differs from the request")
		case "flood":
			fmt.Println(strings.Repeat("x", 1<<20))
		case "slow", "idle":
			fmt.Printf(report, map[string]int{"slow": 100}[kind], 0, "")
		case "refuses":
			if strings.Contains(strings.Join(os.Args, " "), "-rate 0.000 ") {
				fmt.Printf(report, 100, 0, "")
				return
			}
			fmt.Println(`{"report":{"calls":0,"seconds":2,"rate":200,"due":90,"refused":90,"refused_latency_ns":{"count":90,"mean":1,"p50":1,"p90":2,"p99":3,"p999":4,"max":5},` +
				`"server_cpu_ns":1,"client_cpu_ns":1,"server_peak_bytes":1,"client_peak_bytes":1,"latency_ns":{"count":0,"mean":0,"p50":0,"p90":0,"p99":0,"p999":0,"max":0}}}`)
		default:
			fmt.Printf(report, 200, 0, "")
		}
	}
}

// untoldOfTurns returns 0 if this program was told of turns, and of a window for all who
// have some.
func untoldOfTurns() (failed int) {
	arguments := strings.Join(os.Args, " ")
	both := strings.Contains(arguments, " -duration 40ms -slice 10ms -turn ") && strings.HasSuffix(arguments, " -turns 2")
	if both || strings.HasSuffix(arguments, " -duration 20ms -slice 10ms -turn 0 -turns 1") {
		return 0
	}
	return 1
}
