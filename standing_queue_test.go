package fulmar

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
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

func (c *crowd) joins(came, timeout time.Duration) {
	start := time.Now()
	started, err := entering(c.a, 0, timeout)
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
