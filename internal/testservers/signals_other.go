//go:build !unix

package testservers

import "syscall"

// Elsewhere there are no such signals: sending these is an error.
const (
	stopSignal     = syscall.Signal(19)
	continueSignal = syscall.Signal(18)
)
