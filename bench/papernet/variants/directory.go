//go:build linux

package main

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

// directory finds the connection that an event is for. add, find and remove are
// called by the goroutine that polls; those that lock do so because a library
// could not promise that: its users dial and close on goroutines of their own.
type directory interface {
	// add returns what goes into epoll_data.
	add(c *connection) uint64
	// find returns nil if it knows that the connection is gone.
	find(data uint64) *connection
	remove(c *connection)
}

// namedDirectory makes the directories of a variant.
type namedDirectory struct {
	name string
	make func() directory
}

func directories() []namedDirectory {
	return []namedDirectory{
		{papernet.Pointer, func() directory { return pointers{} }},
		{papernet.FDMap, func() directory { return &fdMap{connections: map[int32]*connection{}} }},
		{papernet.FDSyncMap, func() directory { return new(fdSyncMap) }},
		{papernet.SlotGeneration, newSlots},
	}
}

// pointers has the address of the connection in epoll_data, as the article has.
//
// unsafe: whoever adds a connection keeps it reachable until it has removed it
// and seen the last event of that batch, and Go's collector does not move what is
// on the heap. Nothing notices if that is wrong, which is what slots are for.
type pointers struct{}

func (pointers) add(c *connection) uint64 { return uint64(uintptr(unsafe.Pointer(c))) }

func (pointers) find(data uint64) *connection {
	// The word is read as a pointer where it stands, as in the article and in the
	// runtime: a conversion of the number would be refused by go vet.
	word := uintptr(data)
	return *(**connection)(unsafe.Pointer(&word))
}

func (pointers) remove(*connection) {}

// fdMap is a map by descriptor, which is what package syscall leaves to its users.
type fdMap struct {
	mu          sync.Mutex
	connections map[int32]*connection
}

func (m *fdMap) add(c *connection) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connections[int32(c.fd)] = c
	return uint64(c.fd)
}

func (m *fdMap) find(data uint64) *connection {
	m.mu.Lock()
	c := m.connections[int32(data)]
	m.mu.Unlock()
	return c
}

func (m *fdMap) remove(c *connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.connections, int32(c.fd))
}

// fdSyncMap is the same with sync.Map, which Netpoll has in builds with the race
// detector.
type fdSyncMap struct{ connections sync.Map }

func (m *fdSyncMap) add(c *connection) uint64 {
	m.connections.Store(c.fd, c)
	return uint64(c.fd)
}

func (m *fdSyncMap) find(data uint64) *connection {
	found, _ := m.connections.Load(int(data))
	c, _ := found.(*connection)
	return c
}

func (m *fdSyncMap) remove(c *connection) { m.connections.Delete(c.fd) }

// slots has an index and a generation in epoll_data, as eventloop has: an event
// for a connection that is gone finds nothing, also if its slot is used again.
type slots struct {
	used []slot
	free []uint32
}

type slot struct {
	connection *connection
	generation uint32
}

func newSlots() directory { return new(slots) }

func (s *slots) add(c *connection) uint64 {
	if len(s.free) == 0 {
		s.free = append(s.free, uint32(len(s.used)))
		s.used = append(s.used, slot{})
	}
	index := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.used[index].connection = c
	c.slot = index
	return uint64(s.used[index].generation)<<32 | uint64(index)
}

func (s *slots) find(data uint64) *connection {
	index, generation := uint32(data), uint32(data>>32)
	if int(index) >= len(s.used) || s.used[index].generation != generation {
		return nil
	}
	return s.used[index].connection
}

func (s *slots) remove(c *connection) {
	s.used[c.slot] = slot{generation: s.used[c.slot].generation + 1}
	s.free = append(s.free, c.slot)
}

// setData and data put 64 bits into an event of package unix, which has two
// fields in their place, and get them out.
func setData(event *unix.EpollEvent, data uint64) {
	event.Fd, event.Pad = int32(uint32(data)), int32(uint32(data>>32))
}

func data(event *unix.EpollEvent) uint64 {
	return uint64(uint32(event.Fd)) | uint64(uint32(event.Pad))<<32
}

// findingConnections is how many connections one is found among: enough that
// they, and what leads to them, do not stay in the first cache.
const findingConnections = 10_000

// finding repeats find for connections in random order, and looks at them.
func finding(d directory) contestant.Repeat {
	connections := make([]*connection, findingConnections)
	events := make([]unix.EpollEvent, findingConnections)
	for i := range connections {
		connections[i] = &connection{fd: i + 10}
		setData(&events[i], d.add(connections[i]))
	}
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	at, sum := 0, 0
	return contestant.Repeat{
		Times: func(n int) (time.Duration, error) {
			begun := time.Now()
			for range n {
				sum += d.find(data(&events[at])).fd
				if at++; at == len(events) {
					at = 0
				}
			}
			return time.Since(begun), nil
		},
		Close: func() error {
			runtime.KeepAlive(sum)
			runtime.KeepAlive(connections)
			return nil
		},
	}
}
