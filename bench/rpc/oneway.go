package rpc

import (
	"context"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/loadgen"
)

// receipts are what a server has seen of calls without replies.
type receipts struct {
	expected map[string]string // text by action
	executed atomic.Uint64
}

// expect prepares for the calls of a case.
func (r *receipts) expect(c Case) {
	if !c.Oneway {
		return
	}
	r.expected = map[string]string{}
	for caller := range c.Callers {
		for _, message := range newMessages(caller, c.MessageBytes) {
			r.expected[message.Action] = message.Msg
		}
	}
}

// add counts a call that has arrived as it was sent. Others are missing in the end.
// It is used concurrently.
func (r *receipts) add(action, msg string) {
	if want, ok := r.expected[action]; ok && want == msg {
		r.executed.Add(1)
	}
}

// onewayCall makes calls without replies and counts them in sent.
func onewayCall(caller Notifier, messages []Message, sent *uint64) loadgen.Call {
	return func() error {
		message := &messages[*sent%uint64(len(messages))]
		*sent++
		return caller.Notify(context.Background(), message.Action, message.Msg)
	}
}

func sum(counts []uint64) (all uint64) {
	for _, n := range counts {
		all += n
	}
	return all
}
