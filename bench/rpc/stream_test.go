package rpc

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
)

// fakeStreams answers with what its functions make of a message.
type fakeStreams struct {
	Caller
	exchange func(action, msg string) (string, string, error)
	down     []Message
	up       Message
}

func (f fakeStreams) Bidi(context.Context) (func(action, msg string) (string, string, error), error) {
	return f.exchange, nil
}

func (f fakeStreams) Down(_ context.Context, _, _ string, each func(action, msg string)) error {
	for _, m := range f.down {
		each(m.Action, m.Msg)
	}
	return nil
}

func (f fakeStreams) Up(context.Context, string, string) (string, string, error) {
	return f.up.Action, f.up.Msg, nil
}

// Each kind of stream is played with a contestant that is right, and with some that are not:
// who loses or changes messages would be the fastest.
func TestStreamCall_ChecksWhatComes(t *testing.T) {
	sent := Message{"a", "text"}
	whole := slices.Repeat([]Message{sent}, StreamMessages)
	changed := slices.Clone(whole)
	changed[StreamMessages-1].Msg = "other"
	count := strconv.Itoa(StreamMessages)
	for _, c := range []struct {
		name   string
		stream Stream
		caller fakeStreams
		right  bool
	}{
		{"an answer", StreamBoth, fakeStreams{exchange: func(action, msg string) (string, string, error) { return action, msg, nil }}, true},
		{"another answer", StreamBoth, fakeStreams{exchange: func(action, _ string) (string, string, error) { return action, "", nil }}, false},
		{"all messages", StreamDown, fakeStreams{down: whole}, true},
		{"a message less", StreamDown, fakeStreams{down: whole[1:]}, false},
		{"a changed message", StreamDown, fakeStreams{down: changed}, false},
		{"all were received", StreamUp, fakeStreams{up: Message{count, "text"}}, true},
		{"one was lost", StreamUp, fakeStreams{up: Message{strconv.Itoa(StreamMessages - 1), "text"}}, false},
		{"another text", StreamUp, fakeStreams{up: Message{count, "txet"}}, false},
	} {
		call, err := streamCall(c.caller, Case{Stream: c.stream}, []Message{sent})
		if err != nil {
			t.Fatal(err)
		}
		if err := call(); c.right != (err == nil) || !c.right && !errors.Is(err, errWrongReply) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := streamCall(struct{ Caller }{}, Case{Stream: StreamUp}, nil); err == nil {
		t.Error("a caller without streams is taken for one with them")
	}
}

func TestStreamSuite_IsThatOfGRPCWithOtherCases(t *testing.T) {
	suite := StreamSuite()
	var got []string
	for _, c := range suite.Cases {
		got = append(got, c.Name)
		if found, err := FindCase(c.Name); err != nil || found.callMessages() == 0 {
			t.Errorf("%s: %+v, %v, want a case that counts messages", c.Name, found, err)
		}
		if want := map[string][2]int{"bidi-1k-c16": {4, 2}, "tts-bidi-1k-c16": {1, 1}, "server-stream-1k": {4, 0}, "client-stream-1k": {4, 0}}[c.Name]; want != [2]int{len(c.Pairs), len(c.Quick)} {
			t.Errorf("%s: pairs %v, and %v in a quick run", c.Name, c.Pairs, c.Quick)
		}
	}
	if want := []string{"bidi-1k-c16", "server-stream-1k", "client-stream-1k", "tts-bidi-1k-c16"}; !slices.Equal(got, want) || suite.Name != "stream" {
		t.Errorf("suite %q with %v, want %v", suite.Name, got, want)
	}
	if len(suite.Programs) != len(GRPCSuite().Programs) {
		t.Errorf("programs %v, want those of suite grpc", suite.Programs)
	}
}
