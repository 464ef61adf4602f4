//go:build unix

package testservers

import "syscall"

const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)
