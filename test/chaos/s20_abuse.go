package main

import (
	"context"
	"fmt"
	"net"
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

// attacked is a server with one port that speaks everything in plaintext, and one with a
// port of TLS, and who calls the first meanwhile.
type attacked struct {
	plain, secured *process
	journal        string
	// perCall is how much of a processor a call of a good caller takes, of both sides of it
	// the server's.
	perCall time.Duration
	crowd   *crowd
}

// outcome is what became of an attack.
type outcome struct {
	text    string
	failed  bool
	took    time.Duration
	memory  int64
	perConn time.Duration
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
	err = a.attacks(ctx, size, &seen)
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
	seen.mostUnlessBusy("p99 of good calls", float64(p99)/float64(alone), 2, "x", quiet())
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
	fleet, err := startFleet(closing, 1, fulmar.ServerConfig{FrameTimeout: abuseTimeout, FirstByteTimeout: abuseTimeout, WriteStallTimeout: abuseTimeout})
	if err != nil {
		return nil, err
	}
	a.plain, a.journal = fleet.servers[0], fleet.journals[0]
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

// attacks runs all of them: one behind the other, over several connections each; or all at
// once over one each, where what each of them takes cannot be told apart.
func (a *attacked) attacks(ctx context.Context, size size, seen *figures) error {
	all := abuses(grpcCall(&chaosapi.Request{}))
	results := make([]outcome, len(all))
	errs := make([]error, len(all))
	if size.short {
		done := make(chan struct{})
		for i := range all {
			go func() {
				results[i], errs[i] = a.attack(ctx, &all[i], 1)
				done <- struct{}{}
			}()
		}
		for range all {
			<-done
		}
	} else {
		for i := range all {
			results[i], errs[i] = a.attack(ctx, &all[i], abuseConns)
		}
	}
	for i := range all {
		if errs[i] != nil {
			return fmt.Errorf("%s: %w", all[i].name, errs[i])
		}
		seen.abuse(&all[i], &results[i], size)
	}
	return nil
}

// abuseConns is how many connections each attack has, which begin a tenth of a second one
// behind the other.
const abuseConns = 8

// abuse adds what became of an attack.
func (f *figures) abuse(attack *abuse, result *outcome, size size) {
	f.note("%s: %s", attack.name, result.text)
	f.failed = f.failed || result.failed
	if attack.cut > 0 {
		f.mostUnlessBusy("after", result.took.Seconds(), attack.cut.Seconds(), " s", 0)
	}
	if !size.short {
		f.most("a connection takes", ms(result.perConn), 100*max(result.took.Seconds(), 1), " ms")
		f.most("and", mib(result.memory), 16, " MiB")
	}
}

// attack opens connections and does on each of them what the attack is.
func (a *attacked) attack(ctx context.Context, attack *abuse, count int) (result outcome, err error) {
	server := a.plain
	if attack.secured {
		server = a.secured
	}
	ran, calls, peak := server.share().ran, a.crowd.made.Load(), server.peakBytes()
	peers := &abusers{}
	defer peers.close()
	results := make(chan outcome, count)
	for i := range count {
		if i > 0 {
			pause(ctx, 100*time.Millisecond)
		}
		conn, err := net.Dial("tcp", server.Address)
		if err != nil {
			return result, err
		}
		one := newAbuser(conn)
		peers.all = append(peers.all, one)
		peers.waiting.Go(func() { one.read(!attack.raw) })
		peers.waiting.Go(func() { results <- one.act(attack) })
	}
	for range count {
		one := <-results
		result.took = max(result.took, one.took)
		if one.failed || result.text == "" {
			result.text, result.failed = one.text, one.failed || result.failed
		}
	}
	took := server.share().ran - ran
	if server == a.plain {
		took -= time.Duration(a.crowd.made.Load()-calls) * a.perCall
	}
	result.perConn = max(took, 0) / time.Duration(count)
	result.memory = (server.peakBytes() - peak) / int64(count)
	return result, nil
}

// act does what the attack is over one connection.
func (a *abuser) act(attack *abuse) (result outcome) {
	defer func() { result.took = time.Since(a.start) }()
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
		return outcome{text: "NOT CUT OFF", failed: true}
	}
	if code := a.code.Load(); code >= 0 {
		return outcome{text: fmt.Sprintf("cut off (code %d)", code)}
	}
	return outcome{text: "cut off"}
}

// mustGoOn wants the connection to serve a call behind the attack.
func (a *abuser) mustGoOn(attack *abuse) outcome {
	if attack.settled != nil && !a.within(attackPatience/2, func() bool { return attack.settled(a) }) {
		return outcome{text: fmt.Sprintf("NOT ALL REFUSED: %d answers, %d resets, code %d", a.answers.Load(), a.resets.Load(), a.code.Load()), failed: true}
	}
	data := a.data.Load()
	good := append(h2(typeWindow, 0, a.id, u32(1000)...), a.call(grpcCall(&chaosapi.Request{}))...)
	if len(attack.settings) == 0 {
		good = good[13:]
	} else {
		// A stream has a window once it is there.
		good = append(good[13:], good[:13]...)
	}
	if _, err := a.conn.Write(good); err != nil || !a.within(attackPatience/2, func() bool { return a.data.Load() > data }) {
		return outcome{text: fmt.Sprintf("A CALL BEHIND IT WAS NOT SERVED, code %d", a.code.Load()), failed: true}
	}
	return outcome{text: fmt.Sprintf("refused %d, reset %d, connection goes on", a.answers.Load()-1, a.resets.Load())}
}
