package fulmar_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// oneHangs serves at three addresses, at the last one by waiting for the caller to give up.
// It returns how many calls that one has had.
func oneHangs(s *several) (hung *atomic.Int64) {
	hung = new(atomic.Int64)
	s.serve(&testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
		time.Sleep(time.Millisecond)
		return left + right, nil
	}}, s.addresses[:2]...)
	s.serve(&testservice.Stub{OnAdd: func(ctx context.Context, _, _ int32) (int32, error) {
		hung.Add(1)
		<-ctx.Done()
		return 0, ctx.Err()
	}}, s.addresses[2])
	return hung
}

// TestHedging_EjectsWhatIsOutrun: of an instance that hangs hedged calls have answers from
// others, and its attempts end canceled. It is left alone all the same, with each way to
// choose, also while callers are many.
func TestHedging_EjectsWhatIsOutrun(t *testing.T) {
	for _, method := range []cluster.Method{cluster.RoundRobin, cluster.Random, cluster.ConsistentHash, cluster.LeastLoaded} {
		t.Run(string(method), func(t *testing.T) {
			config := hedges(policy.Retry{Attempts: 3}, 2)
			config.Timeout = time.Second
			config.Policy.Balancing.Method = method
			if method == cluster.ConsistentHash {
				config.Policy.Balancing.HashKey = "key"
			}
			withSeveral(t, 3, config, func(s *several) {
				hung := oneHangs(s)
				var all sync.WaitGroup
				var failed atomic.Int64
				for caller := range 10 {
					all.Go(func() {
						for i := range 500 {
							ctx := fulmar.WithTransient(context.Background(), "key", fmt.Sprint((caller*7+i)%60))
							if _, err := s.api.Add(ctx, 1, 2); err != nil {
								failed.Add(1)
							}
							time.Sleep(20 * time.Millisecond)
						}
					})
				}
				all.Wait()
				if n := hung.Load(); n > 40 || failed.Load() > 0 {
					t.Errorf("of 5,000 calls %d have failed, %d were sent to what hangs", failed.Load(), n)
				}
			})
		})
	}
}

// TestHedging_OutrunIsWhoBeganFirst: the second attempt, which the first one has outrun, says
// nothing of its instance.
func TestHedging_OutrunIsWhoBeganFirst(t *testing.T) {
	config := hedges(policy.Retry{}, 2)
	config.Policy.Balancing.Method = cluster.RoundRobin
	config.Policy.RetryBudget.Percent = 100
	withSeveral(t, 2, config, func(s *several) {
		s.serve(&testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
			time.Sleep(15 * time.Millisecond) // longer than until the second one begins
			return left + right, nil
		}}, s.addresses...)
		for range 200 {
			if _, err := s.api.Add(context.Background(), 1, 2); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.client.Stats().Ejected; n != 0 {
			t.Errorf("%d are ejected", n)
		}
	})
}

// TestInstances_CanceledCallsAcquitNobody: an instance that hangs and was ejected for it stays
// so while callers give up what they send to it, in its trials too.
func TestInstances_CanceledCallsAcquitNobody(t *testing.T) {
	config := fulmar.ClientConfig{Policy: policy.Client{Balancing: cluster.Balancing{Method: cluster.RoundRobin}}}
	withSeveral(t, 3, config, func(s *several) {
		hung := oneHangs(s)
		for range 30 {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_, _ = s.api.Add(ctx, 1, 2)
			cancel()
		}
		if n := s.client.Stats().Ejected; n != 1 {
			t.Fatalf("%d are ejected", n)
		}
		before := hung.Load()
		for range 600 {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(100*time.Millisecond, cancel)
			_, _ = s.api.Add(ctx, 1, 2)
			cancel()
			time.Sleep(10 * time.Millisecond)
		}
		if n := hung.Load() - before; n == 0 || n > 12 || s.client.Stats().Ejected != 1 {
			t.Errorf("%d of 600 calls in 7 s went to what hangs, %d are ejected", n, s.client.Stats().Ejected)
		}
	})
}
