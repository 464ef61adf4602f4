package netsuite

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"
)

// The protocol, which bench/net/frame.h defines for C: a length of 4 bytes,
// big-endian, that counts what follows it; an id of 8 bytes; flags of 1 byte;
// the payload. The reply is the request, unless that asks for memory.
const (
	// LengthBytes is how much of a frame tells how long it is.
	LengthBytes = 4
	headerBytes = LengthBytes + 8 + 1
	// PayloadMax is what servers accept; the largest case has 4 MiB.
	PayloadMax = 8 << 20
)

// What a request may ask the handler for.
const (
	flagSleep  = 1
	flagBurn   = 2
	flagMemory = 128
)

const (
	sleepTime = 2 * time.Millisecond
	// burnSteps are about 200 us of multiplications that wait for each other:
	// 1.24 ns each where this was written. A number of steps and not a time, so
	// that all contestants do the same work.
	burnSteps = 160_000
)

// FrameBytes returns the length of the frame that begins with head, of which
// LengthBytes must be there.
func FrameBytes(head []byte) (int, error) {
	length := binary.BigEndian.Uint32(head)
	if length < headerBytes-LengthBytes || length > headerBytes-LengthBytes+PayloadMax {
		return 0, fmt.Errorf("frame of %d bytes (limits %d and %d)", length, headerBytes-LengthBytes, headerBytes-LengthBytes+PayloadMax)
	}
	return LengthBytes + int(length), nil
}

// Blocks tells whether Handle would wait. Whoever runs handlers on its event
// loop has to put such a request elsewhere.
func Blocks(frame []byte) bool { return frame[headerBytes-1]&flagSleep != 0 }

// Handle does what a request asks for, and returns the reply. That is the frame
// itself, which is not changed, or new memory. It may be called concurrently.
func Handle(frame []byte) []byte {
	flags := frame[headerBytes-1]
	if flags == 0 {
		return frame
	}
	if flags&flagBurn != 0 {
		runtime.KeepAlive(burn())
	}
	if flags&flagSleep != 0 {
		time.Sleep(sleepTime)
	}
	if flags&flagMemory != 0 && len(frame) >= headerBytes+16 {
		return memoryReply(frame)
	}
	return frame
}

// burn computes. Its result is of no interest, but the compiler must not know.
func burn() uint64 {
	x := uint64(1)
	for range burnSteps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// memoryReply tells how much memory is in use after a garbage collection: the
// heap, and everything that depends on connections, which is also stacks and
// what the runtime keeps outside of the heap for spans, goroutines and polled
// descriptors.
func memoryReply(frame []byte) []byte {
	// The first one only makes pools let go of what they keep.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	reply := append([]byte(nil), frame...)
	binary.BigEndian.PutUint64(reply[headerBytes:], stats.HeapAlloc)
	binary.BigEndian.PutUint64(reply[headerBytes+8:], stats.HeapAlloc+stats.StackInuse+stats.MSpanInuse+stats.MCacheInuse+stats.OtherSys)
	return reply
}
