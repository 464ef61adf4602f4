package fulmar_test

import (
	"context"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// hold has some calls run, and returns what tells how each of them ended.
func hold(t *testing.T, r *running, api testservice.EchoClient, calls int) (ended chan error) {
	t.Helper()
	before := r.server.Stats().Calls
	ended = make(chan error, calls)
	for range calls {
		go func() {
			_, err := api.Echo(context.Background(), &testservice.Message{})
			ended <- err
		}()
	}
	eventually(t, func() bool { return r.server.Stats().Calls == before+calls })
	return ended
}

// letGo ends all calls that are held.
func letGo(t *testing.T, r *running, release chan struct{}, held ...chan error) {
	t.Helper()
	for _, ended := range held {
		for range cap(ended) {
			release <- struct{}{}
		}
	}
	for _, ended := range held {
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	eventually(t, func() bool { return r.server.Stats().Calls == 0 })
}

// TestServerPolicy_RefusalsGiveBack: a call that one limit refuses hands back what the limits
// before it gave, or those would refuse in its place after a few, and go on when it has room
// again.
func TestServerPolicy_RefusalsGiveBack(t *testing.T) {
	one, few := policy.Limit{Running: 1}, policy.Limit{Running: 4}
	adaptive := policy.Adaptive{Enabled: true, MinRunning: 1, MaxRunning: 1}
	for name, test := range map[string]struct {
		document policy.Server
		text     string
	}{
		"caller":   {policy.Server{CallerLimit: one}, "limit of the caller: too many at once (limit 1)"},
		"method":   {policy.Server{CallerLimit: few, Methods: map[string]policy.Limit{"Echo.echo": one}}, "limit of Echo.echo: too many at once (limit 1)"},
		"service":  {policy.Server{CallerLimit: few, Methods: map[string]policy.Limit{"Echo.echo": few, "Echo": one}}, "limit of Echo: too many at once (limit 1)"},
		"server":   {policy.Server{Limit: one, CallerLimit: few, Methods: map[string]policy.Limit{"Echo.echo": few, "Echo": few}}, "limit of the server: too many at once (limit 1)"},
		"adaptive": {policy.Server{Adaptive: adaptive, Limit: few, CallerLimit: few, Methods: map[string]policy.Limit{"Echo.echo": few, "Echo": few}}, "limit of the server: too many for their latency (limit 1)"},
		// Without any other limit.
		"adaptive alone": {policy.Server{Adaptive: adaptive}, "limit of the server: too many for their latency (limit 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			r, api, release := limited(t, test.document, fulmar.TTHeader)
			for range 3 {
				held := hold(t, r, api, 1)
				for range 12 {
					_, err := api.Echo(context.Background(), &testservice.Message{})
					wantOverLimit(t, err, test.text)
				}
				letGo(t, r, release, held)
			}
			for range 12 {
				if _, err := api.Add(context.Background(), 1, 2); err != nil {
					t.Errorf("another method, afterwards: %v", err)
				}
			}
		})
	}
}

// TestServerPolicy_LimitThatComesLater: what the guide says of calls that run when a limit
// is set. They do not count if there was no limit at all when they began, and do if there
// was one, however wide.
func TestServerPolicy_LimitThatComesLater(t *testing.T) {
	wide, narrow := policy.Limit{Running: 10_000_000}, policy.Limit{Running: 3}
	for name, test := range map[string]struct {
		before, after policy.Server
		// room is how many more may begin while five run.
		room int
	}{
		"first limit of all": {policy.Server{}, policy.Server{Limit: narrow}, 3},
		"server":             {policy.Server{Limit: wide}, policy.Server{Limit: narrow}, 0},
		"server, of another": {policy.Server{CallerLimit: wide}, policy.Server{Limit: narrow}, 0},
		"caller":             {policy.Server{CallerLimit: wide}, policy.Server{CallerLimit: narrow}, 0},
		"caller, of another": {policy.Server{Limit: wide}, policy.Server{CallerLimit: narrow}, 3},
		"service":            {policy.Server{Limit: wide}, policy.Server{Methods: map[string]policy.Limit{"Echo": narrow}}, 0},
		"method":             {policy.Server{Limit: wide}, policy.Server{Methods: map[string]policy.Limit{"Echo.echo": narrow}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, api, release := limited(t, test.before, fulmar.TTHeader)
			first := hold(t, r, api, 5)
			if err := r.server.SetPolicy(test.after); err != nil {
				t.Fatal(err)
			}
			more := hold(t, r, api, test.room)
			_, err := api.Echo(context.Background(), &testservice.Message{})
			wantOverLimit(t, err, "too many at once (limit 3)")
			letGo(t, r, release, first, more)
			for range 5 {
				if _, err := api.Add(context.Background(), 1, 2); err != nil {
					t.Errorf("when all have ended: %v", err)
				}
			}
		})
	}
}

// TestServerPolicy_NextOneIsNeverNow: at high rates the next call may begin within less than
// a millisecond, which the text does not round to nothing.
func TestServerPolicy_NextOneIsNeverNow(t *testing.T) {
	refused := fulmar.PermitOf(policy.Server{Limit: policy.Limit{PerSecond: 3000, Burst: 1}}, "Echo", "add")
	for range 1_000_000 {
		if err := refused(); err != nil {
			wantOverLimit(t, err, "limit of the server: 3000 calls in a second (the next one in 1ms)")
			return
		}
	}
	t.Error("a million calls passed")
}
