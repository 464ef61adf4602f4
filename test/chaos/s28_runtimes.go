package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
)

// raceDetector ends the server over the first race that it sees.
const raceDetector = "GORACE=halt_on_error=1"

// runtimes is S28: servers with one, two and eight processors, hardly any memory, a
// collector that always runs, and the race detector.
func runtimes(ctx context.Context, size size) (seen figures, err error) {
	for _, environment := range [][]string{
		{"GOMAXPROCS=1"}, {"GOMAXPROCS=2"}, {"GOMAXPROCS=8"}, {"GOGC=1"}, {"GOMEMLIMIT=64MiB"}, {"GOMAXPROCS=8", "GOGC=1", "GOMEMLIMIT=64MiB"},
		{raceDetector, "GOMAXPROCS=8"},
	} {
		if environment[0] == raceDetector && size.raced == "" {
			seen.note("without the race detector")
			continue
		}
		var closing closing
		calls, verdict, err := underRuntime(ctx, size, &closing, environment)
		closing.close()
		if err != nil {
			return seen, fmt.Errorf("%v: %w", environment, err)
		}
		seen.note("%v: calls %s", environment, thousands(int64(calls)))
		seen.most("failed", float64(verdict.Failed()), 0, "")
		seen.judged(verdict)
	}
	return seen, nil
}

func underRuntime(ctx context.Context, size size, closing *closing, environment []string) (int, ledger.Verdict, error) {
	folder, remove, err := scratch()
	if err != nil {
		return 0, ledger.Verdict{}, err
	}
	closing.add(remove)
	r := role{Journal: folder("journal"), Config: fulmar.ServerConfig{Address: "127.0.0.1:0"}}
	begin := func() (*process, error) { return start(r, environment) }
	if environment[0] == raceDetector {
		begin = func() (*process, error) { return startCommand(r, environment, size.raced) }
	}
	server, err := begin()
	if err != nil {
		return 0, ledger.Verdict{}, err
	}
	closing.add(server.kill)
	var ids callers
	all, err := protocolCallers(closing, &ids, server.Address, 4, 10*time.Second, 0)
	if err != nil {
		return 0, ledger.Verdict{}, err
	}
	for i, one := range all {
		one.request.Payload = make([]byte, i*i*100)
	}
	crowd := gather(ctx, all, 0)
	pause(ctx, size.during(500*time.Millisecond, 4*time.Second))
	books := crowd.end()
	if _, err := server.stop(20 * time.Second); err != nil {
		return 0, ledger.Verdict{}, err // a race, for one
	}
	var executions ledger.Executions
	if err := executions.Read(folder("journal")); err != nil {
		return 0, ledger.Verdict{}, err
	}
	verdict := ledger.Judge(books, &executions, 0)
	return verdict.Calls, verdict, nil
}
