package eventloop

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout sets TCP_USER_TIMEOUT; 0 is the system's default.
func setUserTimeout(fd uintptr, timeout time.Duration) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
	return os.NewSyscallError("setsockopt", err)
}

// control returns what package net calls for a new socket. What is set on one
// that listens, those that it accepts inherit.
func (c Config) control() func(network, address string, raw syscall.RawConn) error {
	return func(network, _ string, raw syscall.RawConn) (err error) {
		controlErr := raw.Control(func(fd uintptr) {
			if c.ReusePort {
				err = setReusePort(fd)
			}
			if err == nil && c.UserTimeout > 0 && network != "unix" {
				err = setUserTimeout(fd, c.UserTimeout)
			}
		})
		if controlErr != nil {
			return controlErr
		}
		return err
	}
}

// configure does what control does, to a socket that listens already. It may have
// a timeout, which 0 switches off.
func (c Config) configure(socket net.Listener) error {
	tcp, ok := socket.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { err = setUserTimeout(fd, c.UserTimeout) })
	return errors.Join(controlErr, err)
}

// dialControl is control for a socket that will connect.
func (c Config) dialControl() func(network, address string, raw syscall.RawConn) error {
	c.ReusePort = false
	return c.control()
}
