package transport

import (
	"runtime"
	"sync"
)

// gathering has messages of a connection leave together without making the peer wait for
// all of them: a part of the calls at a time. The first one lets others run, who add
// theirs, and whoever has completed a part writes it. With all at once the two sides take
// turns: with 16 streams of 1 KB each had nothing to do for 45 % of the time; with a
// system call for each message they took 11.4 us of processor for one, and 7.0 all at once.
type gathering struct {
	// messages is how many have come since the last writing began, which was number turns.
	messages int
	turns    uint64
	// part is not 0 while somebody lets others run, and writes what they add: so many
	// messages are written without waiting for him.
	part int
	// arrived is how many messages the last read has brought, frames of long ones each for
	// one: so many are likely to be answered at once.
	arrived int
}

// A part is so many eighths of a crowd: 6 of 16, so that it goes in three. With quarters the
// streams made a tenth fewer messages a second (bidi-1k-c16 163,000 in place of 183,000, the
// best quarters of 16 rounds each), with halves they take turns again (150,000).
const gatheringEighths = 3

// gatheringYields is how often others may run if answers are missing. The scheduler sometimes
// lets who yields run before those who have waited for longer: with one yield 62 % of the
// writes of bidi-1k-c16 were of 6 messages, with two 80 % and nearly all others of the 4 that
// 16 leave (perf record of the system calls, 0.3 s).
const gatheringYields = 2

// readyLocked reports whether it is the caller's turn to write, for a crowd of calls on the
// connection of the lock. It may let others run, without the lock.
func (g *gathering) readyLocked(crowd int, lock sync.Locker) bool {
	part := crowd * gatheringEighths / 8
	if crowd < crowdedCalls || g.messages >= part {
		return true
	}
	if g.waits() {
		return false // who waits will write it
	}
	g.part = part
	turn := g.turns
	for range gatheringYields {
		lock.Unlock()
		runtime.Gosched()
		lock.Lock()
		if g.turns != turn {
			// Somebody has written it. What has come since then is gathered by its first one:
			// with that written here every seventh write of bidi-1k-c16 was of one message.
			return false
		}
		if g.messages >= g.arrived {
			break
		}
	}
	g.part = 0
	return true
}

// othersLocked reports whether what the caller has added is left to who waits: readyLocked
// would say so too, with the lock taken once more for each message that is sent, and for each
// that is received meanwhile. Without that, and with reads that the scheduler is not told of
// (retryRead), bidi-1k-c16 made 1.07 times as many messages for 0.95 of the processor each, and
// unary-1k-c100 took 0.92 of it (bench run -before, 7 rounds).
func (g *gathering) othersLocked() bool { return g.messages < g.part }

func (g *gathering) waits() bool { return g.part > 0 }

// takenLocked is told that somebody writes all that has come.
func (g *gathering) takenLocked() {
	g.messages, g.part = 0, 0
	g.turns++
}
