//go:build race

package eventloop

import (
	"runtime"
	"unsafe"
)

// The race detector does not see what the kernel reads and writes.

func raceRead(p []byte) {
	if len(p) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&p[0]), len(p))
	}
}

func raceWritten(p []byte) {
	if len(p) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&p[0]), len(p))
	}
}
