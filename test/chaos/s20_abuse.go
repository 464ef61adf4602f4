package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/chaos/gen/chaosapi"
	"github.com/fulmar-rpc/fulmar/test/chaos/ledger"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// grpcCall is the message of a call of Chaos.call in gRPC.
func grpcCall(request *chaosapi.Request) []byte {
	body, err := thrift.Marshal(&chaosapi.ChaosCallArgs{Request: request})
	if err != nil {
		panic(err)
	}
	return prefixed(0, body)
}

// longCall asks for 16 KiB.
func longCall() []byte { return grpcCall(&chaosapi.Request{Zeros: 16 << 10}) }

// attacked is a server with one port that speaks everything in plaintext, others with a port
// of TLS and with room for little, and who calls the first meanwhile.
type attacked struct {
	plain, secured *process
	// little has a small MaxBufferedBytes.
	little    *process
	attackers *process
	journal   string
	// perCall is how much of a processor a call of a good caller takes, of both sides of it
	// the server's.
	perCall time.Duration
	crowd   *crowd
}

// attackRole is peers that mean no good, as a process of their own that gets what everybody
// else leaves of the processors: attackers are elsewhere, and take nothing that good callers
// and the server compute with. p99 of good calls was 3.1 times what it was without attacks when
// all were one process, 2.4 times so, on two processors.
type attackRole struct{ Plain, Secured, Little string }

// attacks are some of all abuses that are made at once, over so many connections each.
type attacks struct{ First, Count, Connections int }

// outcome is what became of an attack.
type outcome struct {
	Text   string
	Failed bool
	Took   time.Duration
	// Memory and processor time of the server are for each connection.
	Memory  int64
	PerConn time.Duration
}

// undisturbed makes good calls with no attack beside them, and returns their books.
func (a *attacked) undisturbed(ctx context.Context, all []*caller, size size) []*ledger.Book {
	a.crowd = gather(ctx, all, 2*time.Millisecond)
	pause(ctx, size.during(500*time.Millisecond, 3*time.Second))
	return a.crowd.end()
}

// abused is S20: peers that use HTTP/2, gRPC and ports in ways that they are not meant for.
func abused(ctx context.Context, size size) (seen figures, err error) {
	var closing closing
	defer closing.close()
	a, err := startAttacked(&closing)
	if err != nil {
		return seen, err
	}
	var ids callers
	all, err := goodCallers(&closing, &ids, a.plain.Address, 3)
	if err != nil {
		return seen, err
	}
	every := func(*ledger.Call) bool { return true }
	before := a.plain.share()
	books := a.undisturbed(ctx, all, size)
	a.perCall = (a.plain.share().ran - before.ran) / time.Duration(max(a.crowd.made.Load(), 1))
	for _, one := range all {
		one.book = ids.book()
	}
	files, peak := a.plain.descriptors(), a.plain.peakBytes()
	quiet := busyMachine()
	a.crowd = gather(ctx, all, 2*time.Millisecond)
	err = a.all(ctx, size, &seen)
	calls := a.crowd.end()
	if err != nil {
		return seen, err
	}
	p99 := quantile(took(calls, every), 0.99)
	for _, one := range all {
		one.book = ids.book()
	}
	// Also behind the attacks: the machine may have changed since it began.
	books = append(books, a.undisturbed(ctx, all, size)...)
	alone := quantile(took(books, every), 0.99)
	seen.most("memory of all", mib(a.plain.peakBytes()-peak), float64(size.of(256, 128)), " MiB")
	seen.tailUnlessBusy("p99 of good calls", float64(p99)/float64(alone), 2, "x", quiet())
	left := a.plain.descriptors() - files
	for limit := time.Now().Add(5 * time.Second); left > 0 && time.Now().Before(limit); left = a.plain.descriptors() - files {
		pause(ctx, 20*time.Millisecond)
	}
	seen.most("descriptors left", float64(left), 0, "")
	executions := &ledger.Executions{}
	if err := executions.Read(a.journal); err != nil {
		return seen, err
	}
	seen.judged(ledger.Judge(append(books, calls...), executions, 0))
	return seen, nil
}

func startAttacked(closing *closing) (*attacked, error) {
	s, err := newSecured(closing)
	if err != nil {
		return nil, err
	}
	own, err := s.authority.issue(nil)
	if err != nil {
		return nil, err
	}
	short := func(r *role) {
		r.Config.FrameTimeout, r.Config.FirstByteTimeout, r.Config.WriteStallTimeout = abuseTimeout, abuseTimeout, abuseTimeout
	}
	a := &attacked{}
	if a.secured, _, err = s.start(own, short); err != nil {
		return nil, err
	}
	folder, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	closing.add(remove)
	a.journal = folder("journal")
	plain := role{Journal: a.journal, Streams: true, Config: fulmar.ServerConfig{Address: "127.0.0.1:0"}}
	short(&plain)
	if a.plain, err = start(plain, nil); err != nil {
		return nil, err
	}
	closing.add(a.plain.kill)
	plain.Journal, plain.Config.MaxBufferedBytes = "", abuseBudget
	if a.little, err = start(plain, nil); err != nil {
		return nil, err
	}
	closing.add(a.little.kill)
	attacking := attackRole{Plain: a.plain.Address, Secured: a.secured.Address, Little: a.little.Address}
	if a.attackers, err = start(role{Attacking: &attacking}, nil, "chrt", "--idle", "0"); err != nil {
		return nil, err
	}
	closing.add(a.attackers.kill)
	return a, nil
}

// goodCallers are some of each protocol.
func goodCallers(closing *closing, ids *callers, target string, each int) (all []*caller, err error) {
	for _, protocol := range []fulmar.Protocol{fulmar.GRPC, fulmar.TTHeader, fulmar.Framed} {
		api, err := client(closing, fulmar.ClientConfig{Target: target, Protocol: protocol, Timeout: -1})
		if err != nil {
			return nil, err
		}
		for range each {
			all = append(all, &caller{api: api, book: ids.book(), limit: 5 * time.Second, request: chaosapi.Request{Payload: make([]byte, 100)}})
		}
	}
	return all, nil
}

// all makes all attacks: one behind the other, over several connections each; or all at
// once over one each, where what each of them takes cannot be told apart.
func (a *attacked) all(ctx context.Context, size size, seen *figures) error {
	all := abuses(grpcCall(&chaosapi.Request{}))
	results := make([]outcome, 0, len(all))
	step, connections := 1, abuseConns
	if size.short {
		step, connections = len(all), 1
	}
	for first := 0; first < len(all) && ctx.Err() == nil; first += step {
		server := a.plain
		switch {
		case step == 1 && all[first].secured:
			server = a.secured
		case step == 1 && all[first].little:
			server = a.little
		}
		some, err := a.attack(attacks{first, step, connections}, server)
		if err != nil {
			return fmt.Errorf("%s: %w", all[first].name, err)
		}
		results = append(results, some...)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i := range all {
		seen.abuse(&all[i], &results[i], size)
	}
	return nil
}

// abuseConns is how many connections each attack has, which begin a tenth of a second one
// behind the other.
const abuseConns = 8

// abuse adds what became of an attack.
func (f *figures) abuse(attack *abuse, result *outcome, size size) {
	f.note("%s: %s", attack.name, result.Text)
	f.failed = f.failed || result.Failed
	if attack.cut > 0 {
		f.mostUnlessBusy("after", result.Took.Seconds(), attack.cut.Seconds(), " s", 0)
	}
	if !size.short {
		f.most("a connection takes", ms(result.PerConn), 100*max(result.Took.Seconds(), 1), " ms")
		f.most("and", mib(result.Memory), 16, " MiB")
	}
}

// attack has some attacks made at a server, and returns what became of each.
func (a *attacked) attack(some attacks, server *process) (results []outcome, err error) {
	ran, calls, peak := server.share().ran, a.crowd.made.Load(), server.peakBytes()
	line, err := json.Marshal(some)
	if err != nil {
		return nil, err
	}
	answer, err := a.attackers.ask(string(line), 2*attackPatience)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &results); err != nil {
		return nil, err
	}
	if len(results) != some.Count {
		return nil, fmt.Errorf("the attackers answered %s", answer)
	}
	took := server.share().ran - ran
	if server == a.plain {
		took -= time.Duration(a.crowd.made.Load()-calls) * a.perCall
	}
	for i := range results {
		results[i].PerConn = max(took, 0) / time.Duration(some.Connections)
		results[i].Memory = (server.peakBytes() - peak) / int64(some.Connections)
	}
	return results, nil
}

// attack is what the process of the attackers does, for each line until there is none.
func (r attackRole) attack() error {
	fmt.Println("attacking")
	all := abuses(grpcCall(&chaosapi.Request{}))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var some attacks
		if err := json.Unmarshal(lines.Bytes(), &some); err != nil {
			return err
		}
		results, errs := make([]outcome, some.Count), make([]error, some.Count)
		var group sync.WaitGroup
		for i := range some.Count {
			group.Go(func() { results[i], errs[i] = r.over(some.Connections, &all[some.First+i]) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		text, err := json.Marshal(results)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", text)
	}
	return nil
}

// over opens connections and does on each of them what the attack is.
func (r attackRole) over(connections int, attack *abuse) (result outcome, err error) {
	address := r.Plain
	switch {
	case attack.secured:
		address = r.Secured
	case attack.little:
		address = r.Little
	}
	peers := &abusers{}
	defer peers.close()
	results := make(chan outcome, connections)
	for i := range connections {
		if i > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return result, err
		}
		one := newAbuser(conn)
		peers.all = append(peers.all, one)
		peers.waiting.Go(func() { one.read(attack) })
		peers.waiting.Go(func() { results <- one.act(attack) })
	}
	for range connections {
		one := <-results
		result.Took = max(result.Took, one.Took)
		if one.Failed || result.Text == "" {
			result.Text, result.Failed = one.Text, one.Failed || result.Failed
		}
	}
	return result, nil
}

// act does what the attack is over one connection.
func (a *abuser) act(attack *abuse) (result outcome) {
	defer func() { result.Took = time.Since(a.start) }()
	sent, begun := 0, false
	a.send(func() []byte {
		if !begun {
			begun = true
			var b []byte
			if !attack.raw {
				b = preface(attack.settings...)
			}
			if attack.first != nil {
				b = append(b, attack.first(a)...)
			}
			return b
		}
		if sent++; attack.again == nil || sent > attack.times {
			return nil
		}
		return attack.again(a)
	})
	if attack.cut > 0 {
		return a.mustEnd()
	}
	return a.mustGoOn(attack)
}

// mustEnd wants the server to end the connection.
func (a *abuser) mustEnd() outcome {
	<-a.ended
	if !a.isOver() {
		return outcome{Text: "NOT CUT OFF", Failed: true}
	}
	if code := a.code.Load(); code >= 0 {
		return outcome{Text: fmt.Sprintf("cut off (code %d)", code)}
	}
	return outcome{Text: "cut off"}
}

// mustGoOn wants the connection to serve a call behind the attack.
func (a *abuser) mustGoOn(attack *abuse) outcome {
	if attack.settled != nil && !a.within(attackPatience/2, func() bool { return attack.settled(a) }) {
		return outcome{Text: fmt.Sprintf("NOT ALL REFUSED: %d answers, %d resets, code %d", a.answers.Load(), a.resets.Load(), a.code.Load()), Failed: true}
	}
	data := a.data.Load()
	if _, err := a.conn.Write(a.good(attack)); err != nil || !a.within(attackPatience/2, func() bool { return a.data.Load() > data }) {
		return outcome{Text: fmt.Sprintf("A CALL BEHIND IT WAS NOT SERVED, code %d", a.code.Load()), Failed: true}
	}
	return outcome{Text: fmt.Sprintf("refused %d, reset %d, connection goes on", max(a.answers.Load()-1, 0), a.resets.Load())}
}

// good is the call that must be served behind an attack.
func (a *abuser) good(attack *abuse) []byte {
	if attack.behind != nil {
		return attack.behind()
	}
	good := append(h2(typeWindow, 0, a.id, u32(1000)...), a.call(grpcCall(&chaosapi.Request{}))...)
	if len(attack.settings) == 0 {
		good = good[13:]
	} else {
		// A stream has a window once it is there.
		good = append(good[13:], good[:13]...)
	}
	return good
}
