package eventloop

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls that do not wait return at once, so the scheduler need not be told
// that they begin and end. Being told, its monitor takes the processor away from
// those that it sees twice, and the goroutine has to find another: echo-128-c64 of
// suite net, with handlers on the poller, went from 96 to 103 thousand calls a
// second without it (the commits before and after, 7 interleaved runs each).
//
// They do not wait whatever the socket's flag says: with Conn.SyscallConn, or a
// child process, others can change it. A raw call that waits would stop the
// garbage collector, and with it the process.

// rawMost is the longest transfer that the scheduler is not told of. A collection
// of garbage that begins meanwhile waits for it: 64 KiB are 11 us, 1 MiB 280 us.
const rawMost = 64 << 10

// rawPieces is how many pieces are written so at most; the list is on the stack.
const rawPieces = 16

// receiveOnce reads what is there, 0 bytes with an error.
func receiveOnce(fd int, p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case len(p) > rawMost:
		n, _, _, _, err := unix.RecvmsgBuffers(fd, [][]byte{p}, nil, unix.MSG_DONTWAIT)
		return max(n, 0), err
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	raceWritten(p[:n])
	return int(n), nil
}

// retryRead is receiveOnce until no signal comes between.
func retryRead(fd int, p []byte) (n int, err error) {
	for {
		if n, err = receiveOnce(fd, p); err != unix.EINTR {
			return n, err
		}
	}
}

// peekOnce looks whether a byte is there, and leaves it.
func peekOnce(fd int) (int, error) {
	var first [1]byte
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&first[0])), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// sendFlags: SIGPIPE is for programs that look at no errors.
const sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

// sendOnce writes what the socket takes, 0 bytes with an error.
func sendOnce(fd int, pieces [][]byte) (int, error) {
	length := lengthOf(pieces)
	switch {
	case length == 0:
		return 0, nil
	case len(pieces) > rawPieces || length > rawMost:
		n, err := unix.SendmsgBuffers(fd, pieces, nil, nil, sendFlags)
		return max(n, 0), err
	case len(pieces) == 1:
		p := pieces[0]
		raceRead(p)
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), sendFlags, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	}
	var list [rawPieces]unix.Iovec
	count := 0
	for _, p := range pieces {
		if len(p) > 0 {
			raceRead(p)
			list[count].Base = &p[0]
			list[count].SetLen(len(p))
			count++
		}
	}
	message := unix.Msghdr{Iov: &list[0]}
	message.SetIovlen(count)
	n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), sendFlags)
	runtime.KeepAlive(pieces)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
