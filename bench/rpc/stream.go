package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// Stream is which side sends more than one message.
type Stream string

// The kinds. The zero Stream is none.
const (
	// StreamBoth keeps a stream for each caller: a call is a message and its answer.
	StreamBoth Stream = "both"
	// StreamDown is a call that StreamMessages messages answer, and StreamUp one that has as
	// many, and one answer.
	StreamDown Stream = "down"
	StreamUp   Stream = "up"
)

// StreamMessages is how many messages a stream in one direction has: enough that to open it
// is a small part.
const StreamMessages = 100

// Streamer is what callers are in cases with streams.
type Streamer interface {
	// Bidi opens a stream on which exchange sends a message and returns its answer.
	Bidi(ctx context.Context) (exchange func(action, msg string) (string, string, error), err error)
	// Down calls each for every message that comes, until the stream ends.
	Down(ctx context.Context, action, msg string, each func(action, msg string)) error
	// Up sends the same message StreamMessages times and returns the answer: how many the
	// server has received, as the action, and the text of the last.
	Up(ctx context.Context, action, msg string) (replyAction, replyMsg string, err error)
}

// StreamCases returns the cases of suite stream.
func StreamCases() []Case {
	return []Case{
		{Name: "bidi-1k-c16", Callers: 16, Shared: true, MessageBytes: 1 << 10, Stream: StreamBoth},
		{Name: "server-stream-1k", Callers: 16, Shared: true, MessageBytes: 1 << 10, Stream: StreamDown},
		{Name: "client-stream-1k", Callers: 16, Shared: true, MessageBytes: 1 << 10, Stream: StreamUp},
		{Name: "tts-bidi-1k-c16", Callers: 16, Shared: true, MessageBytes: 1 << 10, Stream: StreamBoth, TTHeader: true},
	}
}

// StreamSuite describes the suite stream to the runner. The contestants are those of suite
// grpc.
func StreamSuite() harness.Suite {
	suite := GRPCSuite()
	suite.Name, suite.Cases = "stream", nil
	for _, c := range StreamCases() {
		played := c.harness()
		played.Pairs, played.Quick = harness.Against(ours, "grpc-go", "connect-go", "kitex", "drpc"), nil
		if c.TTHeader {
			played.Pairs = harness.Against(ours, "kitex") // Nobody else has them.
		}
		played.Open = harness.OpenUnlessQuick // No floor names a latency.
		switch {
		case c.TTHeader:
			played.Quick = played.Pairs
		case c.Stream == StreamBoth:
			played.Quick = harness.Against(ours, "grpc-go", "kitex")
		}
		suite.Cases = append(suite.Cases, played)
	}
	return suite
}

// callMessages is how many messages a call carries, where those are counted.
func (c Case) callMessages() int64 {
	switch c.Stream {
	case StreamBoth:
		return 1
	case StreamDown, StreamUp:
		return StreamMessages
	}
	return 0
}

// streamCall returns the calls of a caller in a case with streams.
func streamCall(caller Caller, c Case, messages []Message) (loadgen.Call, error) {
	streamer, ok := caller.(Streamer)
	if !ok {
		return nil, errors.New("it has no streams")
	}
	var once func(Message) error
	switch c.Stream {
	case StreamDown:
		once = func(m Message) error { return checkedDown(streamer, m) }
	case StreamUp:
		once = func(m Message) error { return checkedUp(streamer, m) }
	default:
		exchange, err := streamer.Bidi(context.Background())
		if err != nil {
			return nil, err
		}
		once = func(m Message) error {
			action, msg, err := exchange(m.Action, m.Msg)
			if err == nil && (action != m.Action || msg != m.Msg) {
				err = errWrongReply
			}
			return err
		}
	}
	n := 0
	return func() error {
		message := messages[n%len(messages)]
		n++
		return once(message)
	}, nil
}

func checkedDown(streamer Streamer, want Message) error {
	right, wrong := 0, 0
	err := streamer.Down(context.Background(), want.Action, want.Msg, func(action, msg string) {
		if action == want.Action && msg == want.Msg {
			right++
		} else {
			wrong++
		}
	})
	if err == nil && (wrong > 0 || right != StreamMessages) {
		err = fmt.Errorf("%w: %d messages are right and %d wrong, want %d", errWrongReply, right, wrong, StreamMessages)
	}
	return err
}

func checkedUp(streamer Streamer, sent Message) error {
	action, msg, err := streamer.Up(context.Background(), sent.Action, sent.Msg)
	if err == nil && (action != strconv.Itoa(StreamMessages) || msg != sent.Msg) {
		err = fmt.Errorf("%w: the server received %.20q messages, want %d", errWrongReply, action, StreamMessages)
	}
	return err
}
