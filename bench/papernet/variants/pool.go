//go:build linux

package main

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
)

// buffer is what pools keep: the node of a chained buffer, with its memory.
type buffer struct{ bytes []byte }

// pool lends memory for messages.
type pool interface {
	// get returns a buffer of at least n bytes, of undefined content.
	get(n int) *buffer
	put(b *buffer)
}

// namedPool makes the pools of a variant.
type namedPool struct {
	name string
	make func() pool
}

// cappedBytes is what the pool keeps that lets go of large memory: Netpoll's node
// of the time held 8 KiB.
const cappedBytes = 8 << 10

func pools() []namedPool {
	return []namedPool{
		{papernet.PoolBySize, func() pool { return new(poolBySize) }},
		{papernet.OnePool, func() pool { return &onePool{keep: math.MaxInt} }},
		{papernet.OnePoolCap, func() pool { return &onePool{keep: cappedBytes} }},
		{papernet.WithoutPool, func() pool { return withoutPool{} }},
	}
}

// poolBySize is a group of pools, each for one power of two.
type poolBySize struct{ classes [64]sync.Pool }

func (p *poolBySize) get(n int) *buffer {
	class := bits.Len(uint(n - 1))
	if b, ok := p.classes[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 1<<class)}
}

func (p *poolBySize) put(b *buffer) { p.classes[bits.Len(uint(len(b.bytes)-1))].Put(b) }

// onePool keeps buffers of all sizes. One that is too small gets new memory.
type onePool struct {
	pool sync.Pool
	keep int // how long the memory is that is kept
}

func (p *onePool) get(n int) *buffer {
	b, ok := p.pool.Get().(*buffer)
	if !ok {
		b = new(buffer)
	}
	if len(b.bytes) < n {
		b.bytes = make([]byte, n)
	}
	return b
}

func (p *onePool) put(b *buffer) {
	if len(b.bytes) > p.keep {
		b.bytes = nil
	}
	p.pool.Put(b)
}

type withoutPool struct{}

func (withoutPool) get(n int) *buffer { return &buffer{make([]byte, n)} }
func (withoutPool) put(*buffer)       {}

// inFlight is how many messages have memory at a time.
const inFlight = 64

// messageSizes are lengths of messages: most are small, a few large, and within
// each range every order of magnitude is as frequent. The mean is about 15 KiB.
func messageSizes() []int {
	random := rand.New(rand.NewPCG(2, 0))
	between := func(low, high float64) int { return int(low * math.Pow(high/low, random.Float64())) }
	sizes := make([]int, 1<<14)
	for i := range sizes {
		switch share := random.Float64(); {
		case share < 0.60:
			sizes[i] = between(128, 1<<10)
		case share < 0.85:
			sizes[i] = between(1<<10, 8<<10)
		case share < 0.97:
			sizes[i] = between(8<<10, 64<<10)
		default:
			sizes[i] = between(64<<10, 1<<20)
		}
	}
	return sizes
}

// pooling repeats: the oldest of the messages in flight gives its memory back, and
// another one gets some and fills it.
func pooling(p pool) contestant.Repeat {
	sizes := messageSizes()
	content := make([]byte, 1<<20)
	messages := make([]*buffer, inFlight)
	at := 0
	return contestant.Repeat{Heap: true, Times: func(n int) (time.Duration, error) {
		begun := time.Now()
		for range n {
			place := &messages[at%inFlight]
			if *place != nil {
				p.put(*place)
			}
			size := sizes[at%len(sizes)]
			*place = p.get(size)
			copy((*place).bytes, content[:size])
			at++
		}
		return time.Since(begun), nil
	}}
}
