package fulmartest

import (
	"sync"
	"time"
)

// Forever is the duration of a fault that lasts until Heal.
const Forever time.Duration = -1

// Cut resets all connections to a server, and refuses new ones for d; with 0 they may be
// opened at once. Any negative duration is Forever.
func (n *Network) Cut(server *Server, d time.Duration) {
	n.Refuse(server, d)
	n.sim.Cut(server.address)
}

// Refuse refuses new connections to a server for d, as if nobody listened; those that
// exist go on.
func (n *Network) Refuse(server *Server, d time.Duration) {
	server.faults.begin(faultRefuse, d, func(on bool) { n.sim.Refuse(server.address, on) })
}

// Stall lets nothing through for d, in either direction, and tells nobody. New
// connections open, and stall as well.
func (n *Network) Stall(server *Server, d time.Duration) {
	server.faults.begin(faultStall, d, func(on bool) { n.sim.Stall(server.address, on) })
}

// Partition is Stall where opening a connection hangs too, as if a cable was pulled.
func (n *Network) Partition(server *Server, d time.Duration) {
	server.faults.begin(faultPartition, d, func(on bool) { n.sim.Partition(server.address, on) })
}

// HalfClose ends what a server sends on all its connections of now, as if it had shut
// down that direction; it can still be sent to.
func (n *Network) HalfClose(server *Server) { n.sim.HalfClose(server.address) }

// Heal ends all faults of a server that last.
func (n *Network) Heal(server *Server) { server.faults.end() }

// fault is a kind of fault that lasts for a time.
type fault int

const (
	faultRefuse fault = iota
	faultStall
	faultPartition

	faultKinds
)

// faults are those of one server that last. A later one of a kind replaces an earlier.
type faults struct {
	mu      sync.Mutex
	lasting [faultKinds]lasting
}

// lasting is a fault that lasts. number tells it from those before and after it.
type lasting struct {
	number int
	change func(on bool)
	timer  *time.Timer
}

// begin begins a fault that ends after d. change is called with the lock held, so that
// the end of one does not come after the beginning of the next.
func (f *faults) begin(kind fault, d time.Duration, change func(on bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endLocked(kind)
	if d == 0 {
		return
	}
	current := &f.lasting[kind]
	current.number++
	current.change = change
	change(true)
	if d > 0 {
		number := current.number
		// A moment early, so that it is over for a test that sleeps as long in a bubble.
		current.timer = time.AfterFunc(d-1, func() { f.expire(kind, number) })
	}
}

// expire ends a fault whose time is over, unless another one has replaced it.
func (f *faults) expire(kind fault, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lasting[kind].number == number {
		f.endLocked(kind)
	}
}

func (f *faults) endLocked(kind fault) {
	current := &f.lasting[kind]
	if current.timer != nil {
		current.timer.Stop()
	}
	if current.change != nil {
		current.change(false)
	}
	*current = lasting{number: current.number}
}

// end ends all of them.
func (f *faults) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind := range faultKinds {
		f.endLocked(kind)
	}
}
