package fulmar_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
	"github.com/fulmar-rpc/fulmar/observe"
)

// timedAdd is a call of add that takes left milliseconds, by a peer that takes replies
// in their order and waits for so many milliseconds; "" is for ever.
func timedAdd(t *testing.T, left, right int32, timeout string) []byte {
	head := ttheader.Head{Sequence: right}
	if timeout != "" {
		head.Ints = []ttheader.IntPair{{Key: wire.KeyTimeout, Value: timeout}}
	}
	return headed(t, head, addCall(t, right, left, right))
}

// answerKinds reads replies, and returns what they are.
func answerKinds(conn net.Conn, calls int) (kinds []string, err error) {
	for range calls {
		answer, err := nextHeaded(conn)
		if err != nil {
			return kinds, err
		}
		kinds = append(kinds, fmt.Sprintf("%d %v", answer.Sequence, answer.Type))
	}
	return kinds, nil
}

// TestServer_DeadlinesCountFromArrival: calls wait behind another one of their
// connection, which is the only thing here that takes time. Each counts from when its
// own last byte had come, and is not run when its caller has stopped waiting, however
// many calls may run.
func TestServer_DeadlinesCountFromArrival(t *testing.T) {
	stub, ran := sleeper()
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		defer conn.Close()
		write(t, conn, timedAdd(t, 100, 1, ""), timedAdd(t, 0, 2, "80"), timedAdd(t, 0, 3, "200"))
		time.Sleep(50 * time.Millisecond)
		// Complete only now, and so with 30 ms left when the first one ends.
		split := timedAdd(t, 0, 4, "80")
		write(t, conn, split[:10])
		time.Sleep(10 * time.Millisecond)
		write(t, conn, split[10:], timedAdd(t, 0, 5, "30"))
		kinds, err := answerKinds(conn, 5)
		if got, want := fmt.Sprint(kinds), "[1 reply 2 exception 3 reply 4 reply 5 exception]"; got != want || err != nil {
			t.Errorf("answers %s, %v, want %s", got, err, want)
		}
	})
	if got := fmt.Sprint(ran()); got != "[1 3 4]" {
		t.Errorf("%s ran, want 1, 3 and 4", got)
	}
}

// TestServer_ForgetsArrivalsTheSafeWay: of more pieces than a connection remembers the
// later ones count as younger, so no call is refused whose caller still waits.
func TestServer_ForgetsArrivalsTheSafeWay(t *testing.T) {
	stub, ran := sleeper()
	const pieces = 40
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		defer conn.Close()
		write(t, conn, timedAdd(t, pieces, 0, ""))
		for i := range int32(pieces) {
			// One in two has expired when the first one ends, and none of the others.
			timeout := []string{"1", fmt.Sprint(pieces + 1 - i)}[i%2]
			write(t, conn, timedAdd(t, 0, i+1, timeout))
			time.Sleep(time.Millisecond)
		}
		if _, err := answerKinds(conn, pieces+1); err != nil {
			t.Error(err)
		}
	})
	seen := map[int32]bool{}
	for _, right := range ran() {
		seen[right] = true
	}
	for i := range int32(pieces) {
		switch patient := i%2 == 1; {
		case patient && !seen[i+1]:
			t.Errorf("call %d was refused, whose caller waits", i+1)
		case !patient && i < 10 && seen[i+1]:
			t.Errorf("call %d ran, which had expired", i+1)
		}
	}
}

// TestServer_QueueTimeCountsFromArrival: as deadlines do. Calls of a connection that
// answers in order get to the queue late.
func TestServer_QueueTimeCountsFromArrival(t *testing.T) {
	var held holder
	simulate(t, simnet.Config{}, fulmar.ServerConfig{MaxRunningCalls: 1}, fulmar.ClientConfig{}, held.stub(), func(s *simulation) {
		end := held.begin()
		defer end()
		first, second := s.connect(), s.connect()
		defer first.Close()
		defer second.Close()
		write(t, first, headed(t, flagged(1), message(thriftwire.Call, "nothing", 1, []byte{0})))
		synctest.Wait()
		start := time.Now()
		nothing := func(sequence int32) []byte {
			return headed(t, ttheader.Head{Sequence: sequence}, message(thriftwire.Call, "nothing", sequence, []byte{0}))
		}
		write(t, second, nothing(1), nothing(2))
		for range 2 {
			if answer, err := nextHeaded(second); err != nil || answer.Type != thriftwire.Exception {
				t.Errorf("%v, %v", answer.Type, err)
			}
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("the second call was refused after %v, want 100 ms, as the first one", took)
		}
	})
}

// TestServer_ObserversCountFromArrival: what a call waited for before it ran is part of
// its time.
func TestServer_ObserversCountFromArrival(t *testing.T) {
	stub, _ := sleeper()
	var mu sync.Mutex
	var started []time.Duration
	observer := observe.Observer{Phases: observe.SetOf(observe.PhaseStarted), Event: func(_ *observe.Call, _ any, event observe.Event) {
		mu.Lock()
		defer mu.Unlock()
		started = append(started, event.At)
	}}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{Observers: []observe.Observer{observer}}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		defer conn.Close()
		write(t, conn, timedAdd(t, 70, 1, ""), timedAdd(t, 0, 2, ""))
		if _, err := answerKinds(conn, 2); err != nil {
			t.Error(err)
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(started); got != "[0s 70ms]" {
		t.Errorf("they began at %s of their time, want 0 and 70 ms", got)
	}
}

// TestServer_SaysThatACallExpired: where its caller can hear it still, which one that
// waits longer than it said does.
func TestServer_SaysThatACallExpired(t *testing.T) {
	stub, _ := sleeper()
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, stub, func(s *simulation) {
		conn := s.connect()
		defer conn.Close()
		write(t, conn, timedAdd(t, 20, 1, ""), timedAdd(t, 0, 2, "10"))
		if _, err := nextHeaded(conn); err != nil {
			t.Fatal(err)
		}
		answer, err := nextHeaded(conn)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(answer.Body), "expired after 20ms, before it could run") {
			t.Errorf("the answer is %q", answer.Body)
		}
	})
}
