package fulmar

import (
	"slices"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/observe"
)

// observedStream is a streaming call that somebody observes. Several goroutines have
// something to tell, and each must be able to go on: what comes while an observer is told
// of something is told by the same goroutine, behind that.
type observedStream struct {
	observedCall
	mu sync.Mutex
	// telling: a goroutine does, and will tell what waits. ended: nothing comes behind the end.
	telling, ended bool
	waits          []observe.Event
}

// tell tells of a phase. At PhaseDone the rest of the event is what the call knows by then.
func (o *observedStream) tell(event observe.Event) {
	if o.observers.phases.Has(event.Phase) {
		event.At = time.Since(o.call.Start)
	}
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	o.ended = event.Phase == observe.PhaseDone
	if o.telling {
		o.waits = append(o.waits, event)
		o.mu.Unlock()
		return
	}
	o.telling = true
	o.mu.Unlock()
	o.tellOn(event)
}

// tellOn tells of an event, and of those that come meanwhile, also if an observer ends the
// goroutine.
func (o *observedStream) tellOn(event observe.Event) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if next, more := o.next(); more {
			o.tellOn(next)
		}
	}()
	for more := true; more; event, more = o.next() {
		o.tellStreamed(event)
	}
	returned = true
}

// next returns what has come while something else was told.
func (o *observedStream) next() (event observe.Event, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waits) == 0 {
		o.telling = false
		return event, false
	}
	event = o.waits[0]
	o.waits = slices.Delete(o.waits, 0, 1)
	return event, true
}

func (o *observedStream) tellStreamed(event observe.Event) {
	switch event.Phase {
	case observe.PhaseDone:
		o.tellDone(event.At)
		return
	case observe.PhasePicked:
		o.attempt++
		o.address = event.Address
	case observe.PhaseSent:
		o.messagesOut++
		o.bytesOut += event.Bytes
	case observe.PhaseArrived:
		o.messagesIn++
		o.bytesIn += event.Bytes
	}
	o.tellOf(event)
}

// message tells of a message of so many bytes; o may be nil.
func (o *observedStream) message(phase observe.Phase, bytes int) {
	if o != nil {
		o.tell(observe.Event{Phase: phase, Bytes: bytes})
	}
}
