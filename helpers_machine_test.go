package fulmar_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// Helpers for tests with real sockets, which must not depend on what else the machine
// does.

// waitsForReply makes a call whose handler does not return with more and more time, until
// its time has passed while it waited for the reply: on a busy machine a little may pass
// before the request is sent. It returns the time that the call had, and its error.
func waitsForReply(t *testing.T, timeout time.Duration, call func(timeout time.Duration) error) (had time.Duration, err error) {
	t.Helper()
	for ; ; timeout *= 2 {
		err = call(timeout)
		var e *fulmar.Error
		if !errors.As(err, &e) || e.Code() != fulmar.DeadlineExceeded || e.Phase() == fulmar.PhaseWait || timeout > time.Minute {
			return timeout, err
		}
	}
}

// nobody returns an address where nobody listens until the test ends. That of a listener
// that was closed could be anybody's: this is the other end of a connection.
func nobody(t *testing.T) string {
	t.Helper()
	return connect(t, serve(t, fulmar.ServerConfig{}, adder()).address).LocalAddr().String()
}
