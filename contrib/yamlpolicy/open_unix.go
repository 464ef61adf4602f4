//go:build unix

package yamlpolicy

import "syscall"

// nonBlocking opens a pipe without waiting for somebody who writes to it.
const nonBlocking = syscall.O_NONBLOCK
