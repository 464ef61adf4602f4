//go:build !linux

package eventloop

import (
	"net"
	"syscall"
)

// control returns what package net calls for a new socket.
func (c Config) control() func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) (err error) {
		if !c.ReusePort {
			return nil
		}
		if controlErr := raw.Control(func(fd uintptr) { err = setReusePort(fd) }); controlErr != nil {
			return controlErr
		}
		return err
	}
}

// configure is for a socket that listens already.
func (c Config) configure(net.Listener) error { return nil }

// dialControl is control for a socket that will connect.
func (c Config) dialControl() func(network, address string, raw syscall.RawConn) error { return nil }
