package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// Whoever is refused is told apart from whoever gets a wrong reply.
func TestBoundedCall_TellsRefusedFromWrong(t *testing.T) {
	tooBusy := errors.New("too busy")
	c := Case{Timeout: time.Minute}
	for name, test := range map[string]struct {
		echo func(action, msg string) (string, string, error)
		want error
	}{
		"right":   {func(action, msg string) (string, string, error) { return action, msg, nil }, nil},
		"refused": {func(string, string) (string, string, error) { return "", "", tooBusy }, tooBusy},
		"wrong":   {func(action, _ string) (string, string, error) { return action, "", nil }, errWrongReply},
	} {
		err := boundedCall(&echoes{echo: test.echo}, c, newMessages(0, 8))()
		if !errors.Is(err, test.want) || errors.Is(err, loadgen.ErrRefused) != (name == "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := boundedCall(waits{}, Case{Timeout: time.Millisecond}, newMessages(0, 8))(); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, loadgen.ErrRefused) {
		t.Errorf("%v, want that the call was given up", err)
	}
}

// waits is a caller that gets no reply.
type waits struct{ Caller }

func (waits) Echo(ctx context.Context, _, _ string) (string, string, error) {
	<-ctx.Done()
	return "", "", ctx.Err()
}
