package machine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// distanceTries is how often Distance measures, distanceRounds how many times a line of
	// memory goes there and back in each: 1 to 5 ms.
	distanceTries, distanceRounds = 3, 10_000
	// distanceMost is from when on a round is not one: somebody else has the processor.
	distanceMost = time.Second
)

// Distance returns how long a line of memory takes from one processor to another and back:
// 60 ns if they are two threads of one, 90 ns if they share a cache, three or five times that
// if they do not. The host of a virtual machine decides that anew whenever it likes, and what
// two processes make of each other's messages follows it. It is the shortest of some tries.
func Distance(one, other int) (time.Duration, error) {
	shortest := distanceMost
	for range distanceTries {
		took, err := passed(one, other)
		if err != nil {
			return 0, err
		}
		shortest = min(shortest, took)
	}
	return shortest, nil
}

// passed is one try.
func passed(one, other int) (time.Duration, error) {
	var line struct {
		_ [64]byte
		n atomic.Int64
		_ [64]byte
	}
	var failed atomic.Bool // one of them is not there
	over := time.Now().Add(distanceMost)
	// await waits until the line has a number.
	await := func(n int64) error {
		const looks = 1 << 12 // at the clock, once in so many
		for i := 1; line.n.Load() != n; i++ {
			if i%looks == 0 && (failed.Load() || time.Now().After(over)) {
				return fmt.Errorf("processors %d and %d did not both run for %v", one, other, distanceMost)
			}
		}
		return nil
	}
	there := make(chan error, 1)
	go func() {
		err := On(other, func() error {
			for i := range int64(distanceRounds) {
				if err := await(2*i + 1); err != nil {
					return err
				}
				line.n.Store(2*i + 2)
			}
			return nil
		})
		failed.Store(err != nil)
		there <- err
	}()
	var took time.Duration
	back := On(one, func() error {
		began := time.Now()
		for i := range int64(distanceRounds) {
			line.n.Store(2*i + 1)
			if err := await(2*i + 2); err != nil {
				return err
			}
		}
		took = time.Since(began) / distanceRounds
		return nil
	})
	if back != nil {
		failed.Store(true)
	}
	return took, errors.Join(back, <-there)
}
