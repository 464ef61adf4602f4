package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestBalancer_LongList: of 10,000 instances half refuse connections at the same moment, and
// are back later. The view is made a few times and not for each; meanwhile no call goes to
// one that is ejected, and afterwards all is as if it had been made for each.
func TestBalancer_LongList(t *testing.T) {
	for _, method := range methods() {
		for _, zone := range []string{"", "zone1"} {
			t.Run(fmt.Sprintf("%s %s", method, zone), func(t *testing.T) {
				list := longList(method)
				n := len(list)
				b := cluster.NewBalancer(cluster.Balancing{Method: method, HashKey: "k", Zone: zone}, cluster.Ejection{PauseMin: time.Hour, PauseMax: time.Hour}, 1, seeded(1))
				now := start()
				b.Update(list, now)
				down := map[*cluster.Member]bool{}
				for i, m := range b.Members() {
					down[m] = i%2 == 0
				}
				views, last := 0, any(nil)
				step := func() cluster.Choice {
					choice, ok := b.Pick(now, rand.Uint64()|1)
					if !ok {
						t.Fatal("no instance")
					}
					if choice.Member.Ejected() && choice.Reason != cluster.ReasonTrial {
						t.Fatalf("%s is ejected and was chosen (%v)", choice.Member.Address(), choice.Reason)
					}
					outcome := cluster.Reached
					if down[choice.Member] {
						outcome = cluster.Refused
					}
					b.Done(choice, outcome, time.Millisecond, now)
					if view, _ := b.View(); view != last {
						views, last = views+1, view
					}
					return choice
				}
				// With zones the half that is left keeps its calls, so a part is found out.
				ejections := map[string]int{"": n / 2, "zone1": n / 6}[zone]
				for calls := 0; b.Ejected() < ejections && calls < 100*n; calls++ {
					step()
				}
				if b.Ejected() != ejections {
					t.Fatalf("%d are ejected", b.Ejected())
				}
				if views > 2 {
					t.Errorf("the view was made %d times in a moment", views)
				}
				ejected := b.Ejected()
				if marked := restingOf(b); marked != ejected {
					t.Errorf("%d are said to be ejected of %d", ejected, marked)
				}
				clear(down)
				now = now.Add(5 * time.Millisecond)
				step()
				if _, members := b.View(); members != n-b.Ejected() {
					t.Errorf("the view has %d of %d members that are ready", members, n-b.Ejected())
				}
				// They are back: each shows it in a trial, and gets calls again.
				now, views = now.Add(time.Hour), 0
				for range ejected + 2 {
					step()
				}
				now = now.Add(5 * time.Millisecond)
				step()
				if _, members := b.View(); b.Ejected() != 0 || members != n || views > 3 {
					t.Errorf("%d are ejected, the view has %d members and was made %d times", b.Ejected(), members, views)
				}
			})
		}
	}
}

// longList returns instances in three zones. LeastRequests, which looks at each of them in
// each pick, gets 2,000: with 10,000 the 30,000 picks take 1 s, and 117 s with the race
// detector.
func longList(method cluster.Method) []cluster.Instance {
	n := limits.Instances
	if method == cluster.LeastRequests {
		n /= 5
	}
	list := instances(n)
	for i := range list {
		list[i].Zone = fmt.Sprintf("zone%d", i%3)
	}
	return list
}

// restingOf counts the members that say that they are ejected.
func restingOf(b *cluster.Balancer) (ejected int) {
	for _, m := range b.Members() {
		if m.Ejected() {
			ejected++
		}
	}
	return ejected
}

// TestBalancer_LongListOfOne: all but one of a long list are ejected in a moment, and then
// that one.
func TestBalancer_LongListOfOne(t *testing.T) {
	for _, method := range methods() {
		for _, subset := range []int{0, 20} {
			const n = 1000
			b := cluster.NewBalancer(cluster.Balancing{Method: method, HashKey: "k", Subset: subset}, cluster.Ejection{PauseMin: time.Hour, PauseMax: time.Hour}, 1, seeded(1))
			now := start()
			b.Update(instances(n), now)
			last := b.Members()[n/3]
			for i := 0; b.Ejected() < n-1; i++ {
				now = now.Add(5 * time.Microsecond)
				choice, ok := b.Pick(now, uint64(i+1)*0x9e3779b97f4a7c15)
				if !ok || choice.Member.Ejected() || i > 100*n {
					t.Fatalf("%s, call %d, %d ejected: %+v", method, i, b.Ejected(), choice)
				}
				outcome := cluster.Refused
				if choice.Member == last {
					outcome = cluster.Reached
				}
				b.Done(choice, outcome, time.Millisecond, now)
			}
			for key := range uint64(50) {
				choice, _ := b.Pick(now, key)
				if choice.Member != last {
					t.Fatalf("%s: %s was chosen (%v), %s is the only one", method, choice.Member.Address(), choice.Reason, last.Address())
				}
				b.Done(choice, cluster.Reached, time.Millisecond, now)
			}
			choice, _ := b.Pick(now, 1)
			b.Done(choice, cluster.Refused, 0, now)
			if choice, ok := b.Pick(now, 1); !ok || choice.Reason != cluster.ReasonLastResort {
				t.Errorf("%s: when all are ejected: %v", method, choice.Reason)
			}
		}
	}
}

// TestBalancer_LongListOfFailing: when more fail than may be ejected, they get calls again as
// soon as the view is made.
func TestBalancer_LongListOfFailing(t *testing.T) {
	const n = 1000
	b := cluster.NewBalancer(cluster.Balancing{}, cluster.Ejection{PauseMin: time.Hour, PauseMax: time.Hour}, 1, seeded(1))
	now := start()
	b.Update(instances(n), now)
	for i := 0; b.Ejected() <= n/2; i++ {
		choice, _ := b.Pick(now, 0)
		b.Done(choice, cluster.Failed, time.Millisecond, now)
		if i > 100*n {
			t.Fatalf("%d are ejected after %d calls", b.Ejected(), i)
		}
	}
	now = now.Add(5 * time.Millisecond)
	choice, _ := b.Pick(now, 0)
	b.Done(choice, cluster.Reached, time.Millisecond, now)
	if _, members := b.View(); b.Ejected() != 0 || members != n {
		t.Errorf("%d are left alone, %d get calls", b.Ejected(), members)
	}
	// One that goes while it is ejected counts no more.
	b = cluster.NewBalancer(cluster.Balancing{}, cluster.Ejection{}, 1, seeded(1))
	b.Update(instances(n), now)
	for b.Ejected() < 10 {
		choice, _ := b.Pick(now, 0)
		b.Done(choice, cluster.Refused, 0, now)
	}
	if b.Update(instances(1), now); b.Ejected() > 1 {
		t.Errorf("%d of one are ejected", b.Ejected())
	}
	if b.Update(nil, now); b.Ejected() != 0 {
		t.Errorf("%d of none are ejected", b.Ejected())
	}
}

// TestBalancer_WhoIsGoneLearnsNothing: the last calls of an instance that has left the list
// do not bring it back, not even as one that is ejected.
func TestBalancer_WhoIsGoneLearnsNothing(t *testing.T) {
	const n = 1000
	b := cluster.NewBalancer(cluster.Balancing{}, cluster.Ejection{PauseMin: time.Millisecond}, 1, seeded(1))
	now := start()
	b.Update(instances(2*n), now)
	var held []cluster.Choice
	for len(held) < 50 {
		if choice, _ := b.Pick(now, 0); choice.Member.Address() >= addressOf(2) {
			held = append(held, choice)
		}
	}
	kept := instances(2 * n)[:2]
	for i := range n {
		kept = append(kept, cluster.Instance{Address: fmt.Sprintf("new%d:1", i)})
	}
	b.Update(kept, now)
	gone := 0
	for _, choice := range held {
		if choice.Member.Gone() {
			gone++
		}
		b.Done(choice, cluster.Refused, 0, now)
		if choice.Member.Gone() && choice.Member.Ejected() {
			t.Errorf("%s is gone, and ejected", choice.Member.Address())
		}
	}
	if gone < 40 || b.Ejected() > len(held)-gone {
		t.Errorf("%d are gone, %d of the others are ejected", gone, b.Ejected())
	}
	for range 10 * n {
		now = now.Add(time.Microsecond)
		choice, _ := b.Pick(now, 0)
		if choice.Member.Gone() {
			t.Fatalf("%s is gone and was chosen (%v)", choice.Member.Address(), choice.Reason)
		}
		b.Done(choice, cluster.Reached, time.Millisecond, now)
	}
}

// BenchmarkBalancer_Eject is what an ejection costs when half of the instances refuse
// connections, one after the other.
func BenchmarkBalancer_Eject(b *testing.B) {
	for _, n := range []int{200, limits.Instances} {
		for _, method := range []cluster.Method{cluster.LeastLoaded, cluster.ConsistentHash} {
			b.Run(fmt.Sprintf("%s/%d", method, n), func(b *testing.B) {
				list, now, key := instances(n), start(), uint64(0)
				for b.Loop() {
					balancer := cluster.NewBalancer(cluster.Balancing{Method: method, HashKey: "k"}, cluster.Ejection{}, 1, nil)
					balancer.Update(list, now)
					for balancer.Ejected() < n/2 {
						now, key = now.Add(10*time.Microsecond), key+0x9e3779b97f4a7c15
						choice, _ := balancer.Pick(now, key|1)
						balancer.Done(choice, cluster.Refused, 0, now)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n/2), "ns/ejection")
			})
		}
	}
}
