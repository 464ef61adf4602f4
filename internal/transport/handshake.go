package transport

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/eventloop"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// dialProgress is how far Dial has come, for who stops waiting for it.
type dialProgress struct{ shaking atomic.Bool }

// progressKey is the context key of a *dialProgress.
type progressKey struct{}

// HandshakeBegins says, for PoolConfig.Dial, that the connection is open and the TLS
// handshake begins.
func HandshakeBegins(ctx context.Context) {
	if progress, ok := ctx.Value(progressKey{}).(*dialProgress); ok {
		progress.shaking.Store(true)
	}
}

// phase returns what Dial was doing.
func (p *dialProgress) phase() Phase {
	if p.shaking.Load() {
		return PhaseHandshake
	}
	return PhaseConnect
}

// ErrWantsTLS is the cause of the failure of a call that was sent without TLS to a server
// that speaks nothing else. It is behind an eventloop.HandshakeError.
var ErrWantsTLS = errors.New("the server speaks TLS only")

// checkAlert looks whether what a connection without TLS brings first is an alert of
// TLS: then the server has understood nothing of what was sent. need is how many bytes
// have to be there to tell. No protocol of package wire begins like that: a frame of
// 336 MiB has the first bytes in common, but not the fifth.
func checkAlert(b []byte) (need int, err error) {
	const length = 7 // type, version, length, level, description
	alert := []byte{0x15, 3, 0, 0, 2}
	for i, want := range alert[:min(len(b), len(alert))] {
		if i != 2 && b[i] != want {
			return 0, nil
		}
	}
	switch {
	case len(b) == 0:
		return 0, nil
	case len(b) < length:
		return length, nil
	}
	return 0, &eventloop.HandshakeError{First: append([]byte(nil), b[:length]...), Err: ErrWantsTLS}
}

// waitFailed is the error of a call that has been sent and found its connection ended.
// With TLS 1.3 a server that refuses the client's certificate says so when the client
// takes the handshake for complete: then it has seen nothing of the call.
func waitFailed(phase Phase, err error) *CallError {
	var handshake *eventloop.HandshakeError
	if errors.As(err, &handshake) {
		return &CallError{Phase: PhaseHandshake, Refused: true, Err: err}
	}
	return &CallError{Phase: phase, Sent: true, Err: err}
}

// lossOf is the error of a call whose connection fails. sent: the server may have looked at
// it.
func lossOf(err error, sent bool) *CallError {
	failed := waitFailed(PhaseWait, err)
	if failed.Sent && !sent {
		failed.Phase, failed.Sent = PhaseWrite, false
	}
	return failed
}

// handshakeFailed is told of a connection that ended before it was open.
func (s *Server) handshakeFailed(conn *eventloop.Conn, err error) {
	var failed *eventloop.HandshakeError
	switch peer := conn.RemoteAddr().String(); {
	case !errors.As(err, &failed):
	case failed.First == nil:
		s.log.Warn("connection refused: no TLS handshake", "peer", peer, "reason", failed.Err.Error())
	default:
		name := wire.NameOf(failed.First)
		if name == "" {
			name = "nothing known"
		}
		s.log.Warn("connection refused: no TLS", "peer", peer, "speaks", name, "reason", failed.Err.Error())
	}
}
