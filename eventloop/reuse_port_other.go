//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package eventloop

import "errors"

const canReusePort = false

func setReusePort(uintptr) error { return errors.ErrUnsupported }
