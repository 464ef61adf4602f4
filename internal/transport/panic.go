package transport

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/peerlog"
)

// failOnPanic is deferred by whoever reads a client's connection, with what ends that: a
// panic over what a server has sent would end the process. The calls that wait on the
// connection are told of it, and where it was; the log, if there is one, gets the stack, because
// there may be no calls.
func failOnPanic(log *peerlog.Log, fail func(error)) {
	if value := recover(); value != nil {
		if log != nil {
			log.ErrorWithStack("reading what a server has sent panicked", "panic", fmt.Sprint(value))
		}
		fail(fmt.Errorf("reading what the server has sent panicked%s: %v", panicPlace(), value))
	}
}

// panicPlace returns where the panic began that the caller of its caller has recovered from.
func panicPlace() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf(" in %s, line %d", path.Base(frame.Function), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
