//go:build unix

package eventloop

import (
	"math"
	"syscall"
)

// descriptorLimit returns how many files this process may open.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}
