package rpc

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestCases_AreThoseOfTheDesign(t *testing.T) {
	var names []string
	for _, c := range Cases() {
		names = append(names, c.Name)
		found, err := FindCase(c.Name)
		if err != nil || found != c {
			t.Errorf("%s: found %+v, %v", c.Name, found, err)
		}
	}
	want := []string{
		"pingpong-1k-c1", "pingpong-1k-c100", "pingpong-128-c100", "pingpong-32k-c16", "pingpong-1m-c4",
		"mux-1k-c1", "mux-1k-c8", "mux-1k-c100", "mux-1k-c512", "mux-128-c64",
		"complex-c100", "oneway-1k-c100", "unix-1k-c100", "tls-1k-c100", "local", "idle-10k", "overload-2x",
	}
	if !slices.Equal(names, want) {
		t.Errorf("cases %q, want %q", names, want)
	}
	if _, err := FindCase("other"); err == nil {
		t.Error("a case that does not exist was found")
	}
}

func TestSuite_EveryContestantHasAProgram(t *testing.T) {
	suite := Suite()
	known := map[string]int{}
	for _, program := range suite.Programs {
		for _, name := range program.Contestants {
			known[name]++
		}
	}
	for _, name := range []string{"fulmar", "fulmar-mux", "kitex", "kitex-mux", "grpc-go", "apache-thrift", "arpc"} {
		if known[name] != 1 {
			t.Errorf("%d programs know %s, want 1", known[name], name)
		}
	}
	var quick []string
	for _, c := range suite.Cases {
		for _, pair := range slices.Concat(c.Pairs, c.Quick) {
			if known[pair.Ours] != 1 || known[pair.Peer] != 1 {
				t.Errorf("%s: no program for %v", c.Name, pair)
			}
		}
		for _, pair := range c.Quick {
			quick = append(quick, c.Name+" "+pair.Ours+"/"+pair.Peer)
			if !slices.Contains(c.Pairs, pair) {
				t.Errorf("%s: %v is in a quick run only", c.Name, pair)
			}
		}
	}
	want := []string{"pingpong-1k-c100 fulmar/kitex", "mux-1k-c100 fulmar-mux/kitex-mux", "complex-c100 fulmar/kitex"}
	if !slices.Equal(quick, want) {
		t.Errorf("a quick run compares %q, want what the floors name: %q", quick, want)
	}
}

// Callers must be able to tell their replies apart, and runs must be the same
// every time.
func TestData_IsDistinctAndReproducible(t *testing.T) {
	seen := map[string]bool{}
	for caller := range 50 {
		for _, message := range newMessages(caller, 128) {
			if len(message.Msg) != 128 || seen[message.Msg] || seen[message.Action] {
				t.Errorf("caller %d: message %q of %d bytes is not its own", caller, message.Action, len(message.Msg))
			}
			seen[message.Msg], seen[message.Action] = true, true
		}
		if !slices.Equal(newMessages(caller, 128), newMessages(caller, 128)) {
			t.Errorf("caller %d: other messages the second time", caller)
		}
		for _, c := range NewComplexes(caller) {
			if seen[c.Parts[99].Value] || len(c.Parts) != 100 || len(c.ByName) != 5 {
				t.Errorf("caller %d: complex message %q is not its own", caller, c.Action)
			}
			seen[c.Parts[99].Value] = true
		}
	}
}

// echoes is a caller that answers as it is told.
type echoes struct {
	echo  func(action, msg string) (string, string, error)
	equal bool
	err   error
}

func (e *echoes) Echo(_ context.Context, action, msg string) (string, string, error) {
	return e.echo(action, msg)
}

func (e *echoes) Complex(*Complex) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return e.equal, e.err }
}

func TestEchoCall_ChecksReplies(t *testing.T) {
	refused := errors.New("refused")
	previous := ""
	for name, c := range map[string]struct {
		echo func(action, msg string) (string, string, error)
		want error
	}{
		"right":        {func(action, msg string) (string, string, error) { return action, msg, nil }, nil},
		"other action": {func(_, msg string) (string, string, error) { return "echo", msg, nil }, errWrongReply},
		"same length": {func(action, msg string) (string, string, error) {
			return action, string(slices.Repeat([]byte("x"), len(msg))), nil
		}, errWrongReply},
		"the call before": {func(action, msg string) (string, string, error) {
			msg, previous = previous, msg
			return action, msg, nil
		}, errWrongReply},
		"error": {func(string, string) (string, string, error) { return "", "", refused }, refused},
	} {
		call := echoCall(&echoes{echo: c.echo}, newMessages(1, 16))
		for n := range 4 {
			if err := call(); !errors.Is(err, c.want) {
				t.Errorf("%s, call %d: %v, want %v", name, n, err, c.want)
			}
		}
	}
}

func TestComplexCall_ChecksReplies(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		caller echoes
		want   error
	}{
		{echoes{equal: true}, nil},
		{echoes{equal: false}, errWrongReply},
		{echoes{equal: false, err: refused}, refused},
	} {
		call, err := complexCall(&c.caller, NewComplexes(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := call(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.caller, err, c.want)
		}
	}
}

// A call without a reply counts when it has arrived as it was sent.
func TestOnewayCall_IsCountedByTheServer(t *testing.T) {
	found, err := FindCase("oneway-1k-c100")
	if err != nil {
		t.Fatal(err)
	}
	var received receipts
	received.expect(found)
	arrives := func(change func(m *Message)) notifies {
		return func(action, msg string) error {
			m := Message{Action: action, Msg: msg}
			change(&m)
			received.add(m.Action, m.Msg)
			return nil
		}
	}
	sent := make([]uint64, 4)
	for i, caller := range []notifies{
		arrives(func(*Message) {}),
		arrives(func(m *Message) { m.Action = "echo" }),
		arrives(func(m *Message) { m.Msg = m.Msg[1:] }),
		arrives(func(m *Message) { m.Msg = newMessages(0, found.MessageBytes)[0].Msg }),
	} {
		call := onewayCall(caller, newMessages(i, found.MessageBytes), &sent[i])
		for range 3 {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if received.executed.Load() != 3 || sum(sent) != 12 {
		t.Errorf("%d of %d calls arrived as they were sent, want 3 of 12", received.executed.Load(), sum(sent))
	}
	refused := errors.New("refused")
	call := onewayCall(notifies(func(string, string) error { return refused }), newMessages(0, 1), new(uint64))
	if err := call(); !errors.Is(err, refused) {
		t.Errorf("%v, want the caller's error", err)
	}
}

type notifies func(action, msg string) error

func (n notifies) Notify(_ context.Context, action, msg string) error { return n(action, msg) }
