package fulmar

import (
	"container/list"
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// admission decides which calls of a server run now, which wait, and which are
// refused. Safe for concurrent use.
//
//	arrived -- fewer than MaxRunningCalls run ----------> running -- returned --> gone
//	arrived -- MaxRunningCalls run -----> waiting -- one of them returned --> running
//	arrived -- too many wait, or it would wait too long --------------------> refused
//	waiting -- MaxQueueTime or its own deadline is over, its peer is gone --> refused
type admission struct {
	// callsMost bounds calls in progress, those that wait included; runningMost
	// those that run. Without a queue, which is if runningMost is not less, only
	// inProgress counts: a lock would be shared by all processors.
	callsMost, runningMost int
	inProgress             atomic.Int64
	// configured is what the configuration says of calls that wait, and waits what holds
	// now, with what a policy says.
	configured waitLimits
	waits      atomic.Pointer[waitLimits]
	// adapts: runningMost was not set, and pressure says how many may run. Then no
	// queue has its limits, but a call may wait for so many percent of its time.
	adapts   bool
	pressure pressure // guarded by mu
	// shedding bounds what refusing may cost.
	shedding shedding

	mu      sync.Mutex
	running int
	// waiting holds *waitingCall, the first one first.
	waiting list.List
	// interval is how long it takes lately until the next call that waits may run,
	// or would take if one waited. given is when the last one got its place; zero if
	// none waited then.
	interval time.Duration
	given    time.Time
	// standing keeps calls from waiting behind others that always do. endless is how many of
	// those that wait may do so for ever.
	standing standingQueue
	endless  int
	// clock judges for calls that wait while none comes; nil before the first, running
	// while ticking.
	clock   *time.Timer
	ticking bool
}

// waitLimits bound calls that wait: how many and how long where runningMost was set, and
// for which part of their time where it was not.
type waitLimits struct {
	calls   int
	time    time.Duration
	percent int64
}

// waitingCall is a call that waits until it may run.
type waitingCall struct {
	// granted gets the time when it may; buffered, so that nobody waits for it.
	granted chan time.Time
	// endless: nothing says how long it may wait.
	endless bool
}

// meanOf says how much one call changes the mean: a sixteenth.
const meanOf = 16

// hopeful is how much of its time a call may be expected to wait in percent. What is
// expected is a mean, and one in two takes longer: nobody should wait only to be
// refused in the end.
const hopeful = 75

func newAdmission(config ServerConfig) *admission {
	a := &admission{
		callsMost:   limits.Or(config.MaxCalls, limits.ServerCalls, math.MaxInt),
		runningMost: limits.Or(config.MaxRunningCalls, limits.ServerCalls, math.MaxInt),
		configured: waitLimits{
			calls:   limits.Or(config.MaxQueuedCalls, limits.QueuedCalls, math.MaxInt),
			time:    limits.Or(config.MaxQueueTime, limits.QueueTime, math.MaxInt64),
			percent: int64(limits.Or(config.MaxWaitPercent, limits.WaitPercent, 100)),
		},
		adapts:   config.MaxRunningCalls == 0 && config.MaxWaitPercent >= 0,
		pressure: pressure{processors: runtime.GOMAXPROCS(0)},
	}
	a.configure(config.Policy.Queue)
	return a
}

// configure changes how calls wait that come from now on.
func (a *admission) configure(queue policy.Queue) {
	a.waits.Store(&waitLimits{
		calls:   limits.Or(queue.Calls, a.configured.calls, math.MaxInt),
		time:    limits.Or(queue.Time, a.configured.time, math.MaxInt64),
		percent: limits.Or(int64(queue.WaitPercent), a.configured.percent, 100),
	})
}

// queues reports whether calls wait at all, now.
func (a *admission) queues() bool {
	return !a.adapts && a.runningMost < a.callsMost || a.pressure.limited.Load()
}

// enter returns when a call may run, or why it may not. A call that entered must
// leave, with the time that enter returned. All times count from when its message had
// arrived: it may have waited for a processor.
func (a *admission) enter(ctx context.Context, in *transport.Inbound, deadline time.Time) (started time.Time, err error) {
	if n := a.inProgress.Add(1); n > int64(a.callsMost) {
		a.inProgress.Add(-1)
		return started, overloaded(strconv.FormatInt(n-1, 10) + " calls are running (limit " + strconv.Itoa(a.callsMost) + ")")
	}
	if !a.queues() && !a.adapts && deadline.IsZero() {
		return started, nil
	}
	started = time.Now()
	if a.adapts && !in.Behind {
		a.press(in.Arrived, started)
	}
	err = expired(in.Arrived, started, deadline)
	if err == nil && a.queues() {
		started, err = a.queue(ctx, in, started, deadline)
	}
	if err != nil {
		a.inProgress.Add(-1)
		a.passOn()
	}
	return started, err
}

// press lets pressure know of a call.
func (a *admission) press(arrived, now time.Time) {
	late := isLate(arrived, now)
	if !late && !a.pressure.watching.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pressure.comes(late, now, int(a.inProgress.Load()))
	if a.waiting.Len() > 0 {
		a.passOnLocked() // more may run than before
	}
}

// queue is enter where calls wait for each other.
func (a *admission) queue(ctx context.Context, in *transport.Inbound, now, deadline time.Time) (started time.Time, err error) {
	waits := a.waits.Load()
	most := waits.time
	if a.adapts {
		most = math.MaxInt64
		if !deadline.IsZero() {
			most = deadline.Sub(in.Arrived) / 100 * time.Duration(waits.percent)
		}
	}
	until := in.Arrived.Add(most)
	if !deadline.IsZero() && deadline.Before(until) {
		until = deadline
	}
	times := waitingTimes{in.Arrived, now, until, deadline, most}
	call, err := a.join(in, waits.calls, times)
	if call == nil {
		return now, err
	}
	in.LetGo()
	in.WillWait()
	return a.wait(ctx, call, times)
}

// roomLocked reports whether one call more may run. entering is 1 for a call that
// counts as in progress and neither runs nor waits yet.
func (a *admission) roomLocked(entering int) bool {
	if !a.adapts {
		return a.running < a.runningMost
	}
	return !a.pressure.limited.Load() || int(a.inProgress.Load())-entering-a.waiting.Len() < a.pressure.limit
}

// mostLocked returns how many calls may run.
func (a *admission) mostLocked() int {
	if a.adapts && a.pressure.limited.Load() {
		return a.pressure.limit
	}
	return a.runningMost
}

// join takes a place among those that run, and returns nil, or one among those that wait: where
// runningMost was set, of most.
func (a *admission) join(in *transport.Inbound, most int, times waitingTimes) (*list.Element, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, now := a.waiting.Len(), times.since
	standing := a.standing.bound(n-a.endless, a.mostLocked(), a.interval, now)
	if a.roomLocked(1) && n == 0 {
		a.running++
		if a.adapts && !in.Behind {
			a.pressure.runs(isLate(in.Arrived, now))
		}
		return nil, nil
	}
	a.pressure.queued = true
	if err := a.refusesLocked(n, most, standing, times); err != nil {
		a.standing.refused = true
		return nil, err
	}
	place := a.waiting.PushBack(&waitingCall{granted: make(chan time.Time, 1), endless: times.endless()})
	if times.endless() {
		a.endless++
	}
	if a.adapts {
		// Calls that have entered and not come here yet were counted as running: if
		// all of them wait, one may run.
		a.passOnLocked()
		a.tickLocked()
	}
	return place, nil
}

// refusesLocked returns why a call may not join n others that wait. standing is how many may if it
// is one too many of a queue that stands.
func (a *admission) refusesLocked(n, most, standing int, times waitingTimes) error {
	switch {
	case n >= most && !a.adapts:
		return overloaded(strconv.Itoa(a.running) + " calls are running and " + strconv.Itoa(n) + " wait (limit " + strconv.Itoa(most) + ")")
	case times.endless():
		return nil
	case standing > 0:
		return overloaded(strconv.Itoa(n-a.endless) + " calls wait (limit " + strconv.Itoa(standing) + " of a queue that stands)")
	case n < a.mostLocked():
		return nil
	}
	// One that would be refused in the end is refused now, when its caller can
	// still go elsewhere. How long it would take is a guess, so some may always
	// wait: as many as may run.
	expected, limit := time.Duration(n+1)*a.interval, max(times.until.Sub(times.since), 0)
	if expected > limit/100*hopeful {
		return overloaded(strconv.Itoa(n) + " calls wait, the last one for about " + expected.String() + " (limit " + limit.String() + ")")
	}
	return nil
}

// removeLocked takes a call out of those that wait, because it has got its place or given up.
func (a *admission) removeLocked(place *list.Element, granted bool) {
	if a.waiting.Remove(place).(*waitingCall).endless {
		a.endless--
	} else {
		a.standing.shorter(a.waiting.Len()-a.endless, granted)
	}
}

// waitingTimes are when a call had arrived and began to wait, until when it may and for
// how long in all, and when it expires.
type waitingTimes struct {
	arrived, since, until, deadline time.Time
	most                            time.Duration
}

// endless reports whether nothing says how long a call may wait.
func (t *waitingTimes) endless() bool { return t.deadline.IsZero() && t.most == math.MaxInt64 }

// wait returns when a call that waits may run, or why it will not.
func (a *admission) wait(ctx context.Context, place *list.Element, times waitingTimes) (started time.Time, err error) {
	call := place.Value.(*waitingCall)
	timer := time.NewTimer(times.until.Sub(times.since))
	defer timer.Stop()
	granted, gone, given := false, false, time.Time{}
	select {
	case given = <-call.granted:
		granted = true
		// Who polls gets the processor first: where all are taken by handlers, it waits
		// behind calls that are given places one after the other, and refusals with
		// it. Scenario S13 with one processor, 2x, short: half of the refusals took
		// 7.7 ms without this and 3.5 with it, 99 of 100 took 30 and 14.
		runtime.Gosched()
	case <-timer.C:
	case <-ctx.Done():
		gone = true
	}
	now := time.Now()
	err = expired(times.arrived, now, times.deadline)
	switch {
	case gone:
		err = &Error{code: Canceled, message: "the connection ended before the call could run", executed: ExecutedNo}
	case err == nil && !granted:
		err = overloaded("it waited for " + now.Sub(times.arrived).String() + " to run (limit " + times.most.String() + ")")
	}
	switch {
	case err != nil:
		a.giveUp(place, granted)
	case a.adapts:
		a.runs(isLate(given, now))
	}
	return now, err
}

// runs lets pressure know of a call that has waited and runs now.
func (a *admission) runs(late bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pressure.starting--
	a.pressure.runs(late)
}

// expired is the error for a call whose caller has stopped waiting: nobody is there for
// its answer, so it is not run.
func expired(arrived, now, deadline time.Time) error {
	if deadline.IsZero() || now.Before(deadline) {
		return nil
	}
	return &Error{code: DeadlineExceeded, message: fmt.Sprintf("expired after %v, before it could run", now.Sub(arrived)), executed: ExecutedNo}
}

// giveUp ends the wait of a call that will not run, and passes on the place that it
// was given, or is being given.
func (a *admission) giveUp(place *list.Element, granted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !granted {
		select {
		case <-place.Value.(*waitingCall).granted:
			granted = true
		default:
		}
	}
	switch {
	case !granted:
		a.removeLocked(place, false)
		a.standing.refused = true // it has waited for too long, or its peer does not wait
	case a.adapts:
		a.pressure.starting--
	default:
		a.nextLocked()
	}
}

// leave ends a call that entered.
func (a *admission) leave(started time.Time) {
	a.inProgress.Add(-1)
	if !a.queues() && !a.watches() {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !started.IsZero() {
		a.sampleLocked(started, now)
	}
	a.given = time.Time{}
	if a.waiting.Len() > 0 {
		a.given = now
	}
	if a.adapts {
		a.passOnLocked()
		return
	}
	a.nextLocked()
}

// watches reports whether calls may wait although no more begin to.
func (a *admission) watches() bool { return a.adapts && a.pressure.watching.Load() }

// sampleLocked notes how long it took until a call could have begun.
func (a *admission) sampleLocked(started, now time.Time) {
	took := now.Sub(started) / time.Duration(a.mostLocked())
	if !a.given.IsZero() {
		took = now.Sub(a.given)
	}
	a.interval += (took - a.interval) / meanOf
}

// passOn gives places to calls that wait, if there is room where nobody has said how
// much: a call counted as running that will not run.
func (a *admission) passOn() {
	if !a.adapts || !a.queues() && !a.watches() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.passOnLocked()
}

func (a *admission) passOnLocked() {
	for a.waiting.Len() > 0 && a.roomLocked(0) {
		a.grantLocked()
		a.pressure.starting++
	}
}

// tickLocked makes tick run while calls wait: those that run may wait for them, so that
// none ends, and none comes by which pressure could tell.
func (a *admission) tickLocked() {
	if a.ticking || a.waiting.Len() == 0 {
		return
	}
	a.ticking = true
	if a.clock == nil {
		a.clock = time.AfterFunc(2*limits.LateInterval, a.tick)
	} else {
		a.clock.Reset(2 * limits.LateInterval)
	}
}

func (a *admission) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ticking = false
	a.pressure.rests(time.Now())
	a.passOnLocked()
	a.tickLocked()
}

// nextLocked gives a place among those that run to the call that waits for
// longest.
func (a *admission) nextLocked() {
	if a.waiting.Len() == 0 {
		a.running--
		return
	}
	a.grantLocked()
}

// grantLocked gives the call that waits for longest its place.
func (a *admission) grantLocked() {
	first := a.waiting.Front()
	first.Value.(*waitingCall).granted <- time.Now()
	a.removeLocked(first, true)
}

// overloaded is the error for a call that this server has no room for. Another one may
// have. The text is put together without package fmt, which took 1 of the 11 us of a
// refusal.
func overloaded(message string) *Error {
	return &Error{code: ResourceExhausted, message: message, executed: ExecutedNo, refused: policy.RefusedByLoad}
}

// shedding counts refusals. Refusing takes 10 us of a processor, so if there are
// enough of them they leave nothing for the calls that are served.
type shedding struct {
	// window is the time in units of ShedWindow, refused how many calls were
	// refused in it.
	mu      sync.Mutex
	window  int64
	refused int
}

// refuse counts a refusal and reports whether there are so many that connections
// with refused calls should not be read for a while.
func (s *shedding) refuse(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if window := now.UnixNano() / int64(limits.ShedWindow); window != s.window {
		s.window, s.refused = window, 0
	}
	s.refused++
	return s.refused > limits.ShedRefusals
}
