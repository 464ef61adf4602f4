package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestArriving_CountsItsOwnTime looks at a message every half second, for 20 minutes.
func TestArriving_CountsItsOwnTime(t *testing.T) {
	const streams, rate, looks = 100, limits.FrameBytesPerSecond, 20 * 60 * 2
	still := time.Duration(streams*http2.FrameBytesMin) * time.Second / rate
	for name, test := range map[string]struct {
		// others and own are what the connection brings in half a second.
		others, own func(n int) int
		least, most time.Duration
	}{
		"nothing comes":            {never, never, 20 * time.Minute, 20 * time.Minute},
		"alone":                    {never, each(rate), 20 * time.Minute, 20 * time.Minute},
		"its share":                {each(rate / 2), each(rate/2/streams + 1), 0, time.Second},
		"half of its share":        {each(rate / 2), each(rate / 4 / streams), 9 * time.Minute, 11 * time.Minute},
		"others have half of that": {each(rate / 4), each(rate/4/streams + 1), 10*time.Minute - time.Second, 10*time.Minute + time.Second},
		"others come in bursts":    {every(10, 5*rate), each(rate / streams), 0, time.Second},
		"others came long ago":     {every(1<<20, 1000*rate), each(rate / streams), 20*time.Minute - limits.FrameTimeout - time.Second, 20 * time.Minute},
		"it stands still":          {each(rate), never, 20*time.Minute - still - time.Second, 20*time.Minute - still + time.Second},
	} {
		now, length, brought := time.Now(), 0, int64(0)
		a := arriving{began: now, looked: now}
		took := time.Duration(0)
		for n := range looks {
			now = now.Add(time.Second / 2)
			length += test.own(n)
			brought += int64(test.own(n) + test.others(n))
			took = a.look(now, length, streams, brought, limits.FrameTimeout)
		}
		if took < test.least || took > test.most {
			t.Errorf("%s: %v of its time were counted, want %v to %v", name, took, test.least, test.most)
		}
	}
}

// TestReadingClock_StandsStill while nothing is read.
func TestReadingClock_StandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock readingClock
		began := time.Now()
		shows := func(want time.Duration) {
			t.Helper()
			if got := clock.at(time.Now()).Sub(began); got != want {
				t.Errorf("after %v it shows %v, want %v", time.Since(began), got, want)
			}
		}
		wait := func(d time.Duration) time.Time {
			time.Sleep(d)
			return time.Now()
		}
		clock.goOn()
		wait(time.Second)
		shows(time.Second)
		clock.stop()
		arrived := wait(time.Second)
		clock.stop()
		wait(time.Second)
		shows(time.Second)
		clock.goOn()
		shows(time.Second)
		if got := clock.at(arrived).Sub(began); got != time.Second {
			t.Errorf("of what arrived meanwhile it shows %v, want when it was read", got)
		}
		wait(time.Second)
		shows(2 * time.Second)
		clock.stop()
		clock.goOn()
		shows(2 * time.Second)
	})
}

func never(int) int { return 0 }

func each(bytes int) func(int) int { return func(int) int { return bytes } }

// every brings bytes in the first of so many half seconds, and nothing in the others.
func every(times, bytes int) func(int) int {
	return func(n int) int {
		if n%times == 0 {
			return bytes
		}
		return 0
	}
}
