package grpccompat

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/fulmar-rpc/fulmar"
)

// Where Kitex puts its metadata into headers of gRPC.
const (
	persistentHeader = "rpc-persist-"
	transientHeader  = "rpc-transit-"
)

// incoming returns the metadata of a call as grpc-go has it.
func incoming(call fulmar.Call) metadata.MD {
	md := metadata.MD{}
	for key, value := range call.Metadata().AllTransient() {
		name := strings.ToLower(key)
		if name != key {
			name = transientHeader + strings.ReplaceAll(name, "_", "-")
		}
		md[name] = append(md[name], value)
	}
	for key, value := range call.Metadata().AllPersistent() {
		name := persistentHeader + strings.ReplaceAll(strings.ToLower(key), "_", "-")
		md[name] = append(md[name], value)
	}
	return md
}

// outgoing returns a context whose calls carry md. Headers that the protocol uses itself are
// left out, as grpc-go leaves them out. What incoming has made can go out again: handlers
// pass on what came to them.
func outgoing(ctx context.Context, md metadata.MD) context.Context {
	for key, values := range md {
		name := strings.ToLower(key)
		persistent, isPersistent := strings.CutPrefix(name, persistentHeader)
		transient, isTransient := strings.CutPrefix(name, transientHeader)
		switch {
		case ownHeader(name):
		case isPersistent:
			for _, value := range values {
				ctx = fulmar.WithPersistent(ctx, keyOf(persistent), value)
			}
		case isTransient:
			ctx = fulmar.WithTransient(ctx, keyOf(transient), values...)
		default:
			ctx = fulmar.WithTransient(ctx, name, values...)
		}
	}
	return ctx
}

// keyOf returns a key of Kitex as it was before it became a part of a header.
func keyOf(header string) string { return strings.ReplaceAll(strings.ToUpper(header), "-", "_") }

// ownHeader reports whether a header means something to HTTP/2, gRPC or Kitex.
func ownHeader(name string) bool {
	switch name {
	case "", "content-type", "content-length", "user-agent", "te", "host", "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade",
		"source-service", "source-method":
		return true
	}
	return name[0] == ':' || strings.HasPrefix(name, "grpc-")
}

// returned converts the metadata of a reply.
func returned(m fulmar.Metadata) metadata.MD {
	md := metadata.MD{}
	for key, value := range m.All() {
		md[key] = append(md[key], value)
	}
	return md
}

// toReturn is the same the other way round.
func toReturn(md metadata.MD) (m fulmar.Metadata) {
	for key, values := range md {
		m = m.With(key, values...)
	}
	return m
}

// address is a net.Addr for one that is no IP address and port.
type address string

// Network implements net.Addr.
func (a address) Network() string {
	if strings.HasPrefix(string(a), "/") || strings.HasPrefix(string(a), "@") {
		return "unix"
	}
	return "tcp"
}

// String implements net.Addr.
func (a address) String() string { return string(a) }

func addressOf(text string) net.Addr {
	if port, err := netip.ParseAddrPort(text); err == nil {
		return net.TCPAddrFromAddrPort(port)
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
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
		}
	}
	return p
}
