package transport

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPace_MakesPauses: calls do not wait until all connections are closed that are late.
func TestPace_MakesPauses(t *testing.T) {
	for name, test := range map[string]struct {
		steps, pauses int
		takes         time.Duration
	}{
		"nothing to do":   {steps: 10_000},
		"four at a time":  {steps: 100, takes: sweepTurn / 4, pauses: 25},
		"eight at a time": {steps: 100, takes: sweepTurn / 8, pauses: 12},
		// Four steps take 2 ms and a pause 1, so that four fifths of 500 ms are over in the 134th.
		"too many": {steps: 1000, takes: 500 * time.Microsecond, pauses: 133},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, pace := time.Now(), newPace()
				for range test.steps {
					time.Sleep(test.takes)
					if !pace.next(nil) {
						t.Fatal("it was told to stop")
					}
				}
				took := time.Since(began)
				if want := time.Duration(test.steps)*test.takes + time.Duration(test.pauses)*sweepPause; took != want {
					t.Errorf("it took %v, want %v with %d pauses", took, want, test.pauses)
				}
			})
		})
	}
}

// TestPace_StopsInAPause: a server that stops does not wait for the look at its connections.
func TestPace_StopsInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quit, pace, steps := make(chan struct{}), newPace(), 1
		time.AfterFunc(10*sweepPause+sweepPause/2, func() { close(quit) })
		for pace.next(quit) {
			time.Sleep(sweepTurn)
			steps++
		}
		if took := time.Since(pace.began); took != 10*sweepPause+sweepPause/2 {
			t.Errorf("it stopped after %v", took)
		}
		// A pause each four steps.
		if want := 4 * 7; steps != want {
			t.Errorf("it stopped in step %d, want %d", steps, want)
		}
	})
}
