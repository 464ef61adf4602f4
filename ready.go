package fulmar

import (
	"context"
	"errors"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// WaitForReady makes a call wait for a connection until its time is over, or not, in place
// of ClientConfig.WaitForReady.
func WaitForReady(wait bool) CallOption {
	if wait {
		return CallOption{ready: readyWaits}
	}
	return CallOption{ready: readyFails}
}

// readiness is what a call does that gets no connection.
type readiness uint8

// readyDefault: what the configuration says.
const (
	readyDefault readiness = iota
	readyFails
	readyWaits
)

// waits reports whether a call waits whose client does as byDefault says.
func (r readiness) waits(byDefault bool) bool {
	return r == readyWaits || r == readyDefault && byDefault
}

// whenReady calls try, once, or with wait until it has had a connection. A try that fails
// for want of one has sent nothing. All of them are one call for breakers, budgets and
// explanations.
func whenReady(ctx context.Context, wait bool, call *governedCall, limit time.Duration, now time.Time, try func(now time.Time) error) error {
	err := try(now)
	for pause := limits.ReadyPauseMin; wait && neverConnected(err) && ctx.Err() == nil; pause = min(2*pause, limits.ReadyPauseMax) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		ended := ctx.Err()
		if ended == nil {
			call.waited()
			err = try(time.Now())
			continue
		}
		last, _ := err.(*Error)
		failed := callFailure(ended, max(limit, 1))
		failed.phase, failed.before = last.phase, last
		return failed
	}
	return err
}

// neverConnected reports whether an attempt failed because there was no connection, for a
// reason that can pass.
func neverConnected(err error) bool {
	if e, ok := err.(*Error); ok && e.phase == PhaseResolve {
		return e.code == Unavailable
	}
	failed := transportFailure(err)
	return certainlyUnsent(err) && failed.Phase < transport.PhaseWrite && !errors.Is(failed, transport.ErrExhausted) &&
		!errors.Is(failed, context.Canceled)
}

// withAddress notes where an attempt was made that failed.
func withAddress(err error, address string) error {
	if e, ok := err.(*Error); ok {
		e.address = address
	}
	return err
}
