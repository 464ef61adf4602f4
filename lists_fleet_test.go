package fulmar_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// lostRegistry is a registry, or a source of policies, that is away since it was lost. It has how
// many asked how long after that, for the first time, for the second, and so on.
type lostRegistry struct {
	lost   time.Time
	mu     sync.Mutex
	rounds []map[time.Duration]int
}

// ask returns what asks it for one client.
func (r *lostRegistry) ask() func() error {
	round := 0
	return func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if round == len(r.rounds) {
			r.rounds = append(r.rounds, map[time.Duration]int{})
		}
		r.rounds[round][time.Since(r.lost)]++
		round++
		return errors.New("the registry is away")
	}
}

// resolving is a resolver of which each run is a call.
type resolving func() error

// Resolve is that of cluster.Resolver.
func (r resolving) Resolve(context.Context, func([]cluster.Instance)) error { return r() }

// TestSources_AFleetDoesNotAskAtOnce: clients that have lost their registry at one moment ask
// again at others, from the first time on.
func TestSources_AFleetDoesNotAskAtOnce(t *testing.T) {
	const clients = 50
	synctest.Test(t, func(t *testing.T) {
		sources := map[string]*lostRegistry{"instances": {lost: time.Now()}, "policies": {lost: time.Now()}}
		for range clients {
			policies := sources["policies"].ask()
			client, err := fulmar.NewClient(fulmar.ClientConfig{
				Target: "mine:///shop", Resolver: resolving(sources["instances"].ask()), Dial: dialNowhere, Logger: slog.New(slog.DiscardHandler),
				PolicySource: func(context.Context, func([]byte, string)) error { return policies() },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
		}
		time.Sleep(5 * limits.ResolvePauseMax)
		synctest.Wait()
		for name, source := range sources {
			source.mu.Lock()
			if len(source.rounds) < 10 || source.rounds[0][0] != clients {
				t.Errorf("%s: asked %d times, at first at %v", name, len(source.rounds), source.rounds[0])
			}
			for i, moments := range source.rounds[1:10] {
				for after, asked := range moments {
					if asked > clients/10 {
						t.Errorf("%s, round %d: %d of %d asked after %v", name, i+1, asked, clients, after)
					}
				}
			}
			source.mu.Unlock()
		}
	})
}
