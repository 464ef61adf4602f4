package fulmar

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// crowd is calls that come to an admission, which take some time each, and what became of them.
type crowd struct {
	a     *admission
	takes time.Duration
	all   sync.WaitGroup

	mu sync.Mutex
	// served are when those came, and after how long they could run.
	served  []arrival
	refused int
}

type arrival struct{ came, waited time.Duration }

// come makes calls come, one every so often for so long, each of which may take timeout.
func (c *crowd) come(every, during, timeout time.Duration) {
	for begin := time.Now(); time.Since(begin) < during; time.Sleep(every) {
		c.all.Go(func() { c.joins(time.Since(begin), timeout) })
	}
}

// joins makes a call; timeout 0: it has no deadline.
func (c *crowd) joins(came, timeout time.Duration) {
	start := time.Now()
	var deadline time.Time
	if timeout > 0 {
		deadline = start.Add(timeout)
	}
	started, err := c.a.enter(context.Background(), &transport.Inbound{Arrived: start}, deadline)
	c.mu.Lock()
	if err != nil {
		c.refused++
	} else {
		c.served = append(c.served, arrival{came, time.Since(start)})
	}
	c.mu.Unlock()
	if err == nil {
		time.Sleep(c.takes)
		c.a.leave(started)
	}
}

// slowest is how long those waited at most that came from then on.
func (c *crowd) slowest(from, to time.Duration) (most time.Duration) {
	for _, s := range c.served {
		if s.came >= from && s.came < to {
			most = max(most, s.waited)
		}
	}
	return most
}

// TestAdmission_QueuesThatStandAreShort: twice the calls come that can run. The queue takes them
// up at first, as a burst; then it is short, whoever says how long they may wait and however long
// they take, and the server is as busy as before.
func TestAdmission_QueuesThatStandAreShort(t *testing.T) {
	const never = 24 * time.Hour
	adaptive := func() *admission {
		a := newAdmission(ServerConfig{})
		a.pressure.processors, a.pressure.limit = 1, 1
		a.pressure.newInterval(time.Now())
		a.pressure.limited.Store(true)
		return a
	}
	explicit := func(queue time.Duration) func() *admission {
		return func() *admission { return newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: queue}) }
	}
	cases := map[string]struct {
		make           func() *admission
		takes, timeout time.Duration
		takesUp        time.Duration // the queue takes up
		every          time.Duration // a burst has calls
	}{
		"the server's time":                {explicit(200 * time.Millisecond), 10 * time.Millisecond, never, 100 * time.Millisecond, 5 * time.Millisecond},
		"the caller's time":                {explicit(-1), 10 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond, 5 * time.Millisecond},
		"the shorter of both":              {explicit(time.Second), 10 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond, 5 * time.Millisecond},
		"short calls":                      {explicit(200 * time.Millisecond), time.Millisecond, never, 100 * time.Millisecond, 500 * time.Microsecond},
		"ten times as many":                {explicit(200 * time.Millisecond), 10 * time.Millisecond, never, 100 * time.Millisecond, time.Millisecond},
		"a call takes a third of a second": {explicit(3 * time.Second), 300 * time.Millisecond, never, 800 * time.Millisecond, 150 * time.Millisecond},
		"nobody said how many run":         {adaptive, 10 * time.Millisecond, 250 * time.Millisecond, 80 * time.Millisecond, 5 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := int(max(6*time.Second, 200*c.takes) / c.takes)
				crowd := &crowd{a: c.make(), takes: c.takes}
				during := time.Duration(calls) * c.takes
				// Calls may be late without one that is: nothing says that more may run.
				defer keepLimited(crowd.a)()
				crowd.come(c.every, during, c.timeout)
				crowd.all.Wait()
				if most := crowd.slowest(0, during/4); most < c.takesUp {
					t.Errorf("at first a call waited for %v at most, of %v", most, c.takesUp)
				}
				if most, want := crowd.slowest(during/2, during), max(6*c.takes, 3*limits.QueueTime/shortPart/2); most > want {
					t.Errorf("a call waited for %v in a queue that stood, want %v at most", most, want)
				}
				if len(crowd.served) < calls*19/20 || crowd.refused == 0 {
					t.Errorf("%d calls were served of %d that could be, %d refused", len(crowd.served), calls, crowd.refused)
				}
				// A burst finds room again soon.
				time.Sleep(4 * max(limits.QueueTime, whileCalls*c.takes))
				crowd.served = nil
				crowd.come(c.every, c.takesUp*5/4, c.timeout)
				crowd.all.Wait()
				if most := crowd.slowest(0, never); most < c.takesUp/2 {
					t.Errorf("after a rest a call waited for %v at most, of %v", most, c.takesUp)
				}
			})
		})
	}
}

// keepLimited keeps the limit of an admission that adapts to one call, until it is stopped.
func keepLimited(a *admission) (stop func()) {
	if !a.adapts {
		return func() {}
	}
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(limits.LateInterval / 10)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				a.mu.Lock()
				a.pressure.limit = 1
				a.pressure.newInterval(time.Now())
				a.mu.Unlock()
			}
		}
	})
	return func() { close(done); ended.Wait() }
}

// TestAdmission_BurstsFindRoom: a queue in which now and then somebody waits does not stand,
// and takes up a burst as one does in which nobody has waited.
func TestAdmission_BurstsFindRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := &crowd{a: newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: 200 * time.Millisecond}), takes: 10 * time.Millisecond}
		for range 40 {
			crowd.come(time.Microsecond, 2*time.Microsecond, time.Hour)
			time.Sleep(50 * time.Millisecond)
		}
		crowd.come(time.Microsecond, 14*time.Microsecond, time.Hour)
		crowd.all.Wait()
		if len(crowd.served) != 94 || crowd.refused != 0 {
			t.Errorf("%d calls were served, %d refused", len(crowd.served), crowd.refused)
		}
	})
}

// TestAdmission_ThoseInAHurryAreServed: callers that can wait do not fill the queue so that
// nobody else can join it.
func TestAdmission_ThoseInAHurryAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: time.Second})
		hurry, patient := &crowd{a: a, takes: 10 * time.Millisecond}, &crowd{a: a, takes: 10 * time.Millisecond}
		var both sync.WaitGroup
		both.Go(func() { hurry.come(10*time.Millisecond, 10*time.Second, 250*time.Millisecond) })
		both.Go(func() { patient.come(10*time.Millisecond, 10*time.Second, 2*time.Second) })
		both.Wait()
		hurry.all.Wait()
		patient.all.Wait()
		if len(hurry.served) < 300 || len(patient.served) < 300 {
			t.Errorf("of 1000 calls that could be served those in a hurry were %d, others %d", len(hurry.served), len(patient.served))
		}
	})
}

// TestAdmission_NobodyIsRefusedForLittle: callers that come again when they are served, however
// long the queue is that they make, those who would wait for ever and those beside them, and what
// has come while the server stood still, are served as long as they have the time.
func TestAdmission_NobodyIsRefusedForLittle(t *testing.T) {
	const never = 24 * time.Hour
	explicit := func(queue time.Duration) *admission {
		return newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: queue})
	}
	// again makes one call behind the other.
	again := func(c *crowd, callers int, timeout time.Duration) {
		for range callers {
			c.all.Go(func() {
				for begin := time.Now(); time.Since(begin) < 10*time.Second; {
					c.joins(time.Since(begin), timeout)
				}
			})
		}
	}
	t.Run("closed loop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &crowd{a: explicit(5 * time.Second), takes: 10 * time.Millisecond}
			again(c, 20, 10*time.Second)
			c.all.Wait()
			if c.refused != 0 || len(c.served) < 1000 {
				t.Errorf("%d calls were refused, %d served", c.refused, len(c.served))
			}
		})
	})
	t.Run("beside those who wait for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := explicit(-1)
			ever, c := &crowd{a: a, takes: 10 * time.Millisecond}, &crowd{a: a, takes: 10 * time.Millisecond}
			again(ever, 12, 0)
			hurry := &crowd{a: a, takes: 10 * time.Millisecond} // is refused, so that there may be a bound
			hurry.all.Go(func() { hurry.come(20*time.Millisecond, 9*time.Second, 20*time.Millisecond) })
			c.come(100*time.Millisecond, 9*time.Second, 10*time.Second)
			hurry.all.Wait()
			c.all.Wait()
			ever.all.Wait()
			if c.refused != 0 || ever.refused != 0 || a.endless != 0 || hurry.refused == 0 {
				t.Errorf("%d calls were refused, and %d that would wait for ever; %d wait", c.refused, ever.refused, a.endless)
			}
		})
	})
	t.Run("behind a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &crowd{a: explicit(2 * time.Second), takes: time.Millisecond}
			c.come(2*time.Millisecond, time.Second, never)
			(&crowd{a: c.a, takes: 400 * time.Millisecond}).joins(time.Second, never)
			c.come(2*time.Millisecond, 2*time.Second, never)
			c.all.Wait()
			if c.refused > len(c.served)/100 {
				t.Errorf("%d calls were refused, %d served", c.refused, len(c.served))
			}
		})
	})
}

// TestAdmission_BoundsDoNotStay: callers that come again when they have been served, or refused,
// look like a flood after one; boundTime behind it all of them are served as before.
func TestAdmission_BoundsDoNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, flood, end = 20, 5 * time.Second, 5*time.Second + boundTime + 30*time.Second
		a := newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: 300 * time.Millisecond})
		begin := time.Now()
		var served, refused [callers]int
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for time.Since(begin) < end {
					one := &crowd{a: a, takes: 10 * time.Millisecond}
					one.joins(0, 10*time.Second)
					late := time.Since(begin) > end-20*time.Second
					if one.refused > 0 {
						time.Sleep(70 * time.Millisecond)
					}
					if late {
						served[i] += len(one.served)
						refused[i] += one.refused
					}
				}
			})
		}
		time.Sleep(flood)
		burst := &crowd{a: a, takes: 10 * time.Millisecond}
		burst.come(time.Millisecond, time.Second, 10*time.Second)
		burst.all.Wait()
		all.Wait()
		if burst.refused == 0 || a.standing.since.IsZero() {
			t.Fatalf("the flood was no flood: %d of its calls were refused", burst.refused)
		}
		for i := range callers {
			if served[i] < 90 || refused[i] > 0 {
				t.Errorf("caller %d was served %d times of 100, and refused %d times", i, served[i], refused[i])
			}
		}
	})
}

// TestAdmission_BatchesKeepTheServerBusy: calls come many at a time, a little more than can run.
// What is refused is what the server cannot do, and not what the queue is for.
func TestAdmission_BatchesKeepTheServerBusy(t *testing.T) {
	for _, c := range []struct {
		batch int
		every time.Duration
	}{{60, 50 * time.Millisecond}, {100, 50 * time.Millisecond}, {120, 110 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			crowd := &crowd{a: newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: 300 * time.Millisecond}), takes: time.Millisecond}
			const during = 10 * time.Second
			for begin := time.Now(); time.Since(begin) < during; time.Sleep(c.every) {
				for range c.batch {
					crowd.all.Go(func() { crowd.joins(time.Since(begin), time.Second) })
				}
			}
			crowd.all.Wait()
			if can := int(during / crowd.takes); len(crowd.served) < can*95/100 {
				t.Errorf("%d calls each %v: %d were served of %d that could be", c.batch, c.every, len(crowd.served), can)
			}
			// The queue holds what it takes to be busy until the next batch, and no more for long.
			if most, want := crowd.slowest(during/2, during), 2*c.every+20*time.Millisecond; most > want {
				t.Errorf("%d calls each %v: one waited for %v, want %v at most", c.batch, c.every, most, want)
			}
		})
	}
}

// TestStandingQueue_Judges says what becomes of the bound at the end of a while.
func TestStandingQueue_Judges(t *testing.T) {
	const short = 10
	began := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		q    standingQueue
		late bool
		want int
	}{
		"no bound, and nobody was refused":       {standingQueue{least: 60, peak: 70}, false, 0},
		"it stands":                              {standingQueue{least: 60, peak: 70, refused: true}, false, 20},
		"it always was full":                     {standingQueue{least: 70, peak: 70, refused: true}, false, short},
		"a part of what is allowed stands":       {standingQueue{most: 100, least: 30, peak: 100, refused: true}, false, 80},
		"what is allowed stands":                 {standingQueue{most: 20, least: 20, peak: 20, refused: true}, false, short},
		"it was empty":                           {standingQueue{most: 20, peak: 20, refused: true}, false, 25},
		"it was empty, and is small":             {standingQueue{most: 1, peak: 1, refused: true}, false, 2},
		"it was short and not empty":             {standingQueue{most: 20, least: 3, peak: 20, refused: true}, false, 20},
		"nobody was refused":                     {standingQueue{most: 20, least: 3, peak: 15}, false, 40},
		"nobody was refused, and it stands":      {standingQueue{most: 40, least: 19, peak: 20}, false, 40},
		"nobody was refused for a large bound":   {standingQueue{most: limits.QueuedCalls, peak: 15}, false, 0},
		"it was empty under a large bound":       {standingQueue{most: limits.QueuedCalls, peak: 15, refused: true}, false, 0},
		"it is old":                              {standingQueue{most: 20, least: 20, peak: 20, refused: true, since: began.Add(-boundTime)}, false, 0},
		"nobody came":                            {standingQueue{most: 20, peak: 20, refused: true}, true, 0},
		"nobody came, and those there are still": {standingQueue{most: 20, least: 20, peak: 20, refused: true}, true, short},
	} {
		t.Run(name, func(t *testing.T) {
			if c.q.most > 0 && c.q.since.IsZero() {
				c.q.since = began
			}
			if c.q.judge(short, c.late, began.Add(time.Second)); c.q.most != c.want {
				t.Errorf("the bound is %d, want %d", c.q.most, c.want)
			}
		})
	}
}

// TestStandingQueue_Whiles: a while ends when its time is over and as many got their places as wait;
// without a bound what waits in its second half counts, and a queue in which calls wait for 10 ms
// is short however many they are.
func TestStandingQueue_Whiles(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	grown := func(granted int, interval time.Duration) *standingQueue {
		q := &standingQueue{}
		for n := range 100 {
			q.bound(n, 1, interval, at(time.Duration(n)*limits.QueueTime/200))
		}
		q.refused = true
		q.bound(100, 1, interval, at(limits.QueueTime*6/10))
		for range granted {
			q.shorter(99, true)
		}
		return q
	}
	end := at(limits.QueueTime * 12 / 10)
	if q := grown(100, time.Millisecond); q.bound(100, 1, time.Millisecond, end) != 11 {
		t.Errorf("the bound of a queue that stands is %d, want 11", q.most)
	}
	if q := grown(99, time.Millisecond); q.bound(100, 1, time.Millisecond, end) != 0 {
		t.Errorf("the bound is %d before as many have got their places as wait", q.most)
	}
	if q := grown(100, 100*time.Microsecond); q.bound(100, 1, 100*time.Microsecond, end) != 0 {
		t.Errorf("the bound is %d although calls wait for 10 ms only", q.most)
	}
	if q := grown(100, time.Millisecond); q.bound(100, 200, time.Millisecond, end) != 0 {
		t.Errorf("the bound is %d although as many may run", q.most)
	}
}

// TestAdmission_EndlessCallsAreNotCounted: who may wait for ever is refused by no bound, and makes none.
func TestAdmission_EndlessCallsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(ServerConfig{MaxRunningCalls: 1, MaxQueueTime: -1})
		ever, c := &crowd{a: a, takes: 10 * time.Millisecond}, &crowd{a: a, takes: 10 * time.Millisecond}
		var both sync.WaitGroup
		both.Go(func() { ever.come(50*time.Millisecond, 10*time.Second, 0) })
		both.Go(func() { c.come(4*time.Millisecond, 10*time.Second, 200*time.Millisecond) })
		both.Wait()
		ever.all.Wait()
		c.all.Wait()
		if ever.refused != 0 || len(ever.served) != 200 || a.endless != 0 || c.refused == 0 || len(c.served) < 700 {
			t.Errorf("of 200 that would wait for ever %d were served and %d refused, %d wait; of others %d and %d", len(ever.served), ever.refused, a.endless, len(c.served), c.refused)
		}
	})
}
