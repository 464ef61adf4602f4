package eventloop

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// patientListener is a net.Listener whose Accept can be told when to give up, as
// those of package net can.
type patientListener interface{ SetDeadline(time.Time) error }

// acceptRest accepts what waits in the listening socket, before that is closed: the
// system has opened these connections, their peers have sent requests maybe, and
// closing it would reset them. It returns when nothing waits any more, or giveUp is
// closed, or nobody accepts.
func (l *Listener) acceptRest(giveUp <-chan struct{}) {
	socket, ok := l.socket.(patientListener)
	l.mu.Lock()
	if !ok || !l.accepting || l.stopped || l.shared {
		l.mu.Unlock()
		return
	}
	first := l.rested == nil
	if first {
		l.rested = make(chan struct{})
	}
	rested := l.rested
	l.mu.Unlock()
	if first {
		if l.exclusive {
			turnAway(l.brought)
		}
		// Before it, the accepting goroutine notices nothing of this.
		if socket.SetDeadline(time.Now().Add(limits.AcceptRest)) != nil {
			return
		}
	}
	// It may be in a pause, or have somebody's listener that heeds no deadline.
	timer := time.NewTimer(2 * limits.AcceptRestMax)
	defer timer.Stop()
	select {
	case <-rested:
	case <-l.stopAccept:
	case <-giveUp:
	case <-timer.C:
	}
}

// resting is what the accepting goroutine knows of acceptRest.
type resting struct {
	// began is when the first deadline passed; zero before.
	began time.Time
	// accepted: something was, since the last deadline was set.
	accepted bool
}

// over reports whether err says that nothing waits any more, or that it has taken too
// long, and again whether to accept further.
func (r *resting) over(l *Listener, err error) (over, again bool) {
	l.mu.Lock()
	asked := l.rested != nil
	l.mu.Unlock()
	switch {
	case !asked:
		return false, false
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return !temporary(err), false
	}
	now := time.Now()
	first := r.began.IsZero()
	if first {
		r.began = now
	}
	// An Accept that begins when the deadline has passed does not look, and on a busy
	// machine it may begin late.
	pause := limits.AcceptRestPause
	waits, known := someoneWaits(l.brought)
	if waits || !known {
		pause = limits.AcceptRest
	}
	done := !first && !r.accepted && !waits || now.Sub(r.began) > limits.AcceptRestMax
	if done || l.socket.(patientListener).SetDeadline(now.Add(pause)) != nil {
		return true, false
	}
	r.accepted = false
	return false, true
}

// SetDeadline makes Accept fail when it has passed.
func (l keepAliveListener) SetDeadline(deadline time.Time) error {
	return setAcceptDeadline(l.Listener, deadline)
}

func setAcceptDeadline(listener net.Listener, deadline time.Time) error {
	if patient, ok := listener.(patientListener); ok {
		return patient.SetDeadline(deadline)
	}
	return errors.ErrUnsupported
}
