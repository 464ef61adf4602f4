package transport

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestArrivals_AreNotTooEarly: whatever comes and is taken in whatever pieces, with
// notes or without: a message never seems to be older than its last byte, nor younger
// than the last byte of all, and it is told exactly while there are marks for all.
func TestArrivals_AreNotTooEarly(t *testing.T) {
	start := time.Now()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var a arrivals
		var unread []time.Time // when each byte came
		now, noted, pieces := start, true, 0
		for range 200 {
			if now = now.Add(time.Millisecond); len(unread) == 0 {
				noted, pieces = true, 0
			}
			if random.IntN(2+int(seed%40)) > 0 {
				for range 1 + random.IntN(20) {
					unread = append(unread, now)
				}
				pieces++
				if random.IntN(40) == 0 {
					noted = false // the connection is not blocked
					continue
				}
				a.note(len(unread), now)
			} else if len(unread) > 0 {
				used := 1 + random.IntN(len(unread))
				latest := unread[len(unread)-1]
				got, _ := a.take(used, latest)
				last := unread[used-1]
				if exact := noted && pieces <= arrivalMarks; got.Before(last) || got.After(latest) || exact && !got.Equal(last) {
					t.Fatalf("seed %d: %d of %d bytes came at %v, want %v, at most %v (exactly %v)", seed, used, len(unread), got.Sub(start), last.Sub(start), latest.Sub(start), exact)
				}
				unread = unread[used:]
			}
			if len(a.marks) > arrivalMarks || len(unread) == 0 && a.marks != nil {
				t.Fatalf("seed %d: %d marks for %d bytes", seed, len(a.marks), len(unread))
			}
		}
	}
}
