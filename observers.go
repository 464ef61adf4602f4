package fulmar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/observe"
)

// observers are those of a server or a client. Safe for concurrent use.
type observers struct {
	list []observe.Observer
	// phases are those that anybody wants.
	phases observe.PhaseSet
	// beginning has a bit for each observer with a Begin.
	beginning uint16
	log       *peerlog.Log
	// notReturned is the error of calls whose interceptor or codec panicked, or ended
	// the goroutine.
	notReturned error
}

// newObservers returns nil if none of list observes calls: then nothing is kept for
// them.
func newObservers(list []observe.Observer, log *peerlog.Log) *observers {
	o := &observers{log: log, notReturned: NewError(Internal, "the call ended in a panic, or with its goroutine")}
	calls := false
	for i, observer := range list {
		if observer.Begin != nil {
			o.beginning |= 1 << i
		}
		if observer.Event == nil {
			observer.Phases = 0
		} else if observer.Phases == 0 {
			observer.Phases = observe.All
		}
		calls = calls || observer.Begin != nil || observer.Event != nil
		o.phases |= observer.Phases
		o.list = append(o.list, observer)
	}
	if !calls {
		return nil
	}
	return o
}

// connectionObserver returns what tells list of connections, nil if nobody there
// wants to know.
func connectionObserver(list []observe.Observer, log func() *peerlog.Log) func(observe.Connection) {
	var functions []func(observe.Connection)
	for _, observer := range list {
		if observer.Connection != nil {
			functions = append(functions, observer.Connection)
		}
	}
	if functions == nil {
		return nil
	}
	return func(connection observe.Connection) { tellConnection(functions, connection, log) }
}

// tellConnection calls functions, also those behind one that panics. Behind one that
// ends the goroutine too, which ends when all have been called.
func tellConnection(functions []func(observe.Connection), connection observe.Connection, log func() *peerlog.Log) {
	for i, function := range functions {
		guarded(func() { function(connection) }, func(cause any) {
			if cause == nil {
				defer tellConnection(functions[i+1:], connection, log)
				cause = goexit
			}
			log().ErrorWithStack(observerPanicked, "panic", fmt.Sprint(cause), "connection", connection.Kind.String())
		})
	}
}

// observerPanicked is a kind of log lines: there are only so many of them.
const observerPanicked = "panic in an observer"

// checkObservers returns what is wrong with a configuration's observers.
func checkObservers(config string, list []observe.Observer) (problems []error) {
	if len(list) > limits.Observers {
		problems = append(problems, fmt.Errorf("%s: Observers: %d observers (limit %d)", config, len(list), limits.Observers))
	}
	for i, observer := range list {
		if observer.Begin == nil && observer.Event == nil && observer.Connection == nil {
			problems = append(problems, fmt.Errorf("%s: Observers[%d] has no function", config, i))
		}
	}
	return problems
}

// observedCall is what a call takes that somebody observes; it is part of the call's
// memory. The goroutine of the call uses it.
type observedCall struct {
	observers *observers
	call      observe.Call
	values    [limits.Observers]any
	// without has a bit for each observer that has a Begin which did not return: it is
	// told nothing.
	without uint16
	// inbound is the message on the server; nil on the client.
	inbound *transport.Inbound
	// attempt and address are of the client: how many have begun, and where the last
	// one goes.
	attempt  int
	address  string
	bytesIn  int
	bytesOut int
	// messagesIn and messagesOut are of streams. anywhere: any goroutine may tell of it,
	// not only the handler's.
	messagesIn, messagesOut int
	anywhere                bool
	// err is what the call, or its last attempt, ended in. declared is such an error
	// that is an answer.
	err      error
	declared error
	executed string
}

var _ transport.Teller = (*observedCall)(nil)

// begin tells that the call begins, and returns the context it goes on with.
func (o *observedCall) begin(ctx context.Context) context.Context {
	for o.call.ID == 0 {
		o.call.ID = rand.Uint64()
	}
	o.without = o.observers.beginning
	for i := range o.observers.list {
		if o.observers.list[i].Begin != nil {
			ctx = o.beginOne(ctx, i)
		}
	}
	o.Tell(observe.Event{Phase: observe.PhaseStarted})
	return ctx
}

func (o *observedCall) beginOne(ctx context.Context, i int) (next context.Context) {
	next = ctx
	returned := false
	defer func() {
		if !returned {
			o.failed(recover())
		}
	}()
	made, value := o.observers.list[i].Begin(ctx, &o.call)
	returned = true
	o.without &^= 1 << i
	o.values[i] = value
	if made != nil {
		next = made
	}
	return next
}

// Tell tells of a phase, which is now unless the event says otherwise.
func (o *observedCall) Tell(event observe.Event) {
	if event.At == 0 && o.observers.phases.Has(event.Phase) {
		event.At = time.Since(o.call.Start)
	}
	o.tellOf(event)
}

// tellOf tells of a phase at the time that the event says.
func (o *observedCall) tellOf(event observe.Event) {
	switch event.Phase {
	case observe.PhaseWritten:
		o.bytesOut += event.Bytes
	case observe.PhaseReceived:
		o.bytesIn += event.Bytes
	}
	if !o.observers.phases.Has(event.Phase) {
		return
	}
	event.Attempt, event.Address = o.attempt, o.address
	o.tellFrom(0, &event)
}

// tellFrom tells the observers from the i-th on.
func (o *observedCall) tellFrom(i int, event *observe.Event) {
	for ; i < len(o.observers.list); i++ {
		if o.observers.list[i].Phases.Has(event.Phase) && o.without&(1<<i) == 0 {
			o.tellOne(i, event)
		}
	}
}

// tellOne tells the i-th observer. If that ends the goroutine, the others are told all
// the same, who would miss the end of the call otherwise.
func (o *observedCall) tellOne(i int, event *observe.Event) {
	returned := false
	defer func() {
		if returned {
			return
		}
		cause := recover()
		if cause == nil {
			defer o.tellFrom(i+1, event)
		}
		o.failed(cause)
	}()
	o.observers.list[i].Event(&o.call, o.values[i], *event)
	returned = true
}

// failed logs that an observer panicked, or ended the goroutine of the call: then
// cause is nil, and the call ends with it.
func (o *observedCall) failed(cause any) {
	if cause == nil {
		cause = goexit
		if o.inbound != nil && !o.anywhere {
			o.inbound.EndsGoroutine()
		}
	}
	o.observers.log.ErrorWithStack(observerPanicked, "panic", fmt.Sprint(cause), "method", o.call.Method)
}

// done tells the end of the call.
func (o *observedCall) done() {
	defer o.tellDone(0) // also if an observer ends the goroutine
	if o.inbound != nil {
		if out := o.inbound.Stamps().BytesOut; out > 0 {
			o.Tell(observe.Event{Phase: observe.PhaseWritten, Bytes: out})
		}
	}
}

// tellDone tells the end of the call, which was at a time, or is now if that is 0.
func (o *observedCall) tellDone(at time.Duration) {
	event := observe.Event{
		Phase: observe.PhaseDone, At: at, BytesOut: o.bytesOut, BytesIn: o.bytesIn,
		MessagesOut: o.messagesOut, MessagesIn: o.messagesIn, Err: o.err,
	}
	if o.err != nil {
		event.Code = observe.Code(CodeOf(o.err))
		event.Declared = o.declared != nil && errors.Is(o.err, o.declared)
		event.Origin, event.Executed = OriginLocal.String(), o.executed
		var failure *Error
		if errors.As(o.err, &failure) && failure != nil {
			event.Origin = failure.origin.String()
			if o.inbound == nil {
				event.Executed = executedWord(failure.executed)
			}
		} else if event.Declared && o.inbound == nil {
			event.Origin, event.Executed = OriginRemote.String(), executedWord(ExecutedYes)
		}
	}
	o.Tell(event)
}

// executedWord returns what Event.Executed says.
func executedWord(e Executed) string {
	return [...]string{ExecutedMaybe: "maybe", ExecutedNo: "no", ExecutedYes: "yes"}[e]
}

// --- the client ---

// observedClientCall is a clientCall that somebody observes, in one piece of memory.
type observedClientCall struct {
	wholeCall
	observed observedCall
}

// newCall returns an empty call, and the context it is made with.
func (c *Client) newCall(ctx context.Context, start time.Time, method *MethodDesc) (*clientCall, context.Context) {
	intercepted := len(c.config.Interceptors) > 0
	if c.observers == nil {
		if intercepted {
			return &clientCall{state: new(unaryState)}, ctx
		}
		call, ok := c.calls.Get().(*clientCall)
		if !ok {
			whole := new(wholeCall)
			whole.state = &whole.unary
			call = &whole.clientCall
		}
		return call, ctx
	}
	both := new(observedClientCall)
	both.state = &both.unary
	if intercepted {
		both.state = new(unaryState)
	}
	o := &both.observed
	o.observers = c.observers
	o.call = observe.Call{
		Side: observe.Client, Service: method.Service, Method: method.Name, Undefined: method.isRaw(), Oneway: method.Oneway,
		Protocol: c.protocol.String(), Peer: c.target, Start: start,
	}
	both.state.observed = o
	o.err, o.executed = c.observers.notReturned, executedWord(ExecutedNo)
	begun := false
	defer func() {
		if !begun {
			o.done() // one of them has ended the goroutine
		}
	}()
	ctx = o.begin(ctx)
	begun = true
	return &both.clientCall, ctx
}

// runObserved is run for a call that somebody observes.
func (c *Client) runObserved(call *clientCall) error {
	o := call.state.observed
	o.err, o.executed = c.observers.notReturned, executedWord(ExecutedMaybe)
	defer o.done()
	err := c.run(call)
	if o.err = err; !call.state.invoked {
		o.executed = executedWord(ExecutedNo)
	}
	c.recycle(call)
	return err
}

// picked tells that an attempt goes to an address, and of the one before.
func (u *unaryState) picked(address string) {
	o := u.observed
	if o == nil {
		return
	}
	if o.attempt > 0 {
		o.Tell(observe.Event{Phase: observe.PhaseRetried, Err: o.err})
	}
	o.attempt++
	o.address = address
	o.Tell(observe.Event{Phase: observe.PhasePicked})
}

// tell tells of a phase, if somebody wants to know.
func (u *unaryState) tell(phase observe.Phase, bytes int) {
	if u.observed != nil {
		u.observed.Tell(observe.Event{Phase: phase, Bytes: bytes})
	}
}

// --- the server ---

// observedCallInProgress is one that somebody observes. Handlers may keep the context in
// it, observers their call, for as long as they like; so it does not refer to the request
// and the reply, which can be large.
type observedCallInProgress struct {
	callInProgress
	observed observedCall
}

// newCall returns an empty call. Without interceptors its state is of statesOf.
func (s *Server) newCall(in *transport.Inbound, entry *methodEntry) (call *callInProgress, state *unaryState) {
	if !s.intercepted {
		state, _ = s.statesOf(entry).Get().(*unaryState)
	}
	if state == nil {
		state = new(unaryState)
	}
	if s.observers == nil {
		return new(callInProgress), state
	}
	both := new(observedCallInProgress)
	s.observe(&both.observed, in, entry)
	state.observed = &both.observed
	return &both.callInProgress, state
}

// statesOf holds the states of calls that have ended, if nobody else can have seen them. Entries of
// methods that are not registered are made for one call, so pools of their own would be, too.
func (s *Server) statesOf(entry *methodEntry) *sync.Pool {
	if entry.method.InvokeInto != nil {
		return &entry.states
	}
	return &s.states
}

// observe fills in what observers see of a call; entry is nil if there is no such
// method.
func (s *Server) observe(o *observedCall, in *transport.Inbound, entry *methodEntry) {
	o.observers, o.inbound = s.observers, in
	o.call = observe.Call{
		Side: observe.Server, Undefined: entry == nil || entry.unknown,
		Protocol: Protocol(in.Protocol).String(), Peer: in.Peer, Start: in.Stamps().Complete,
	}
	if entry != nil && entry.method != nil {
		o.call.Service, o.call.Method, o.call.Oneway = entry.method.Service, entry.method.Name, entry.method.Oneway
		return
	}
	o.call.Service, o.call.Method, o.call.Oneway = soundName(in.Head.Service), soundName(in.Name), in.Type == thriftwire.Oneway
}

// soundName returns a name that a peer gave, empty if it can be none.
func soundName(name string) string {
	if len(name) > limits.MethodNameBytes || thriftwire.CheckName([]byte(name)) != nil {
		return ""
	}
	return name
}

// served tells that a call begins to be served, and returns the context for it.
func (o *observedCall) served(ctx context.Context) context.Context {
	o.err, o.executed = o.observers.notReturned, executedNo
	ctx = o.begin(ctx)
	stamps := o.inbound.Stamps()
	o.tellOf(observe.Event{Phase: observe.PhaseFirstByte, At: stamps.FirstByte.Sub(stamps.Complete)})
	o.tellOf(observe.Event{Phase: observe.PhaseReceived, Bytes: stamps.BytesIn})
	return ctx
}

// ended notes what a call ended in. declared says that it is an answer.
func (u *unaryState) ended(err error, declared bool) {
	o := u.observed
	if o == nil {
		return
	}
	o.err, o.declared, o.executed = err, nil, executedYes
	if err == nil {
		return
	}
	if declared {
		o.declared = err
	}
	if o.executed = executedText(err, u.handled); o.executed == "" {
		o.executed = executedWord(ExecutedMaybe)
	}
}

// loggerOr returns the logger of a configuration.
func loggerOr(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}
