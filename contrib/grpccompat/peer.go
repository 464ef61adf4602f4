package grpccompat

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/policy"
)

// address is a net.Addr for one that is no IP address and port.
type address string

// localAddress is what both sides of a call within the process see of each other.
const localAddress = "local"

// Network implements net.Addr.
func (a address) Network() string {
	if a == localAddress {
		return localAddress
	}
	return "tcp"
}

// String implements net.Addr.
func (a address) String() string { return string(a) }

func addressOf(text string) net.Addr {
	if port, err := netip.ParseAddrPort(text); err == nil {
		return net.TCPAddrFromAddrPort(port)
	}
	path := text
	if target, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(target, "//")
	}
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, "@") {
		return &net.UnixAddr{Net: "unix", Name: path}
	}
	return address(text)
}

// peerOf returns who calls. Of a TLS connection it has the caller's certificate, and nothing
// else.
func peerOf(call fulmar.Call) *peer.Peer {
	p := &peer.Peer{Addr: addressOf(call.Peer()), LocalAddr: addressOf(call.Local())}
	if identity, ok := call.Identity(); ok {
		leaf := []*x509.Certificate{identity.Certificate()}
		p.AuthInfo = credentials.TLSInfo{
			State: tls.ConnectionState{
				HandshakeComplete: true, NegotiatedProtocol: "h2", PeerCertificates: leaf, VerifiedChains: [][]*x509.Certificate{leaf},
			},
			CommonAuthInfo: secured(),
		}
	}
	return p
}

// secured is what a connection with TLS is.
func secured() credentials.CommonAuthInfo {
	return credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
}

// handshakes remembers what the server has shown in the last handshake of a client.
type handshakes struct {
	last atomic.Pointer[tls.ConnectionState]
}

// watch returns config, nil for none, with a look at each handshake.
func (h *handshakes) watch(config *tls.Config) *tls.Config {
	if config == nil {
		return &tls.Config{VerifyConnection: h.note}
	}
	watched := config.Clone()
	watched.VerifyConnection = func(state tls.ConnectionState) error {
		if config.VerifyConnection != nil {
			if err := config.VerifyConnection(state); err != nil {
				return err
			}
		}
		return h.note(state)
	}
	return watched
}

func (h *handshakes) note(state tls.ConnectionState) error {
	state.HandshakeComplete = true // It is, when a call uses the connection.
	h.last.Store(&state)
	return nil
}

// called returns who was called, as the explanation of the call has it; nil if nobody was.
func (c *Client) called(e *policy.Explanation, err error) *peer.Peer {
	var failed *fulmar.Error
	if e.Len() == 0 || errors.As(err, &failed) && neverConnected(failed) {
		return nil
	}
	// Of several attempts the one whose outcome is that of the call, or else the last.
	attempt := e.At(e.Len() - 1)
	for i := range e.Len() {
		if e.At(i).Code == e.Code {
			attempt = e.At(i)
		}
	}
	p := &peer.Peer{Addr: addressOf(attempt.Instance)}
	if !c.config.secure() || c.config.Local != nil {
		return p
	}
	info := credentials.TLSInfo{State: tls.ConnectionState{HandshakeComplete: true, NegotiatedProtocol: "h2"}, CommonAuthInfo: secured()}
	if last := c.handshakes.last.Load(); last != nil && attempt.Picked == policy.PickedOnly {
		// With several servers nobody knows here which of them that was.
		info.State = *last
	}
	p.AuthInfo = info
	return p
}

// neverConnected reports whether a call has failed before it had a connection.
func neverConnected(err *fulmar.Error) bool {
	switch err.Phase() {
	case fulmar.PhaseEncode, fulmar.PhaseAcquire, fulmar.PhaseConnect, fulmar.PhaseHandshake, fulmar.PhaseResolve:
		return true
	}
	return false
}
