package eventloop

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// Dial opens a connection to a network "tcp", "tcp4", "tcp6" or "unix". It ends
// with ctx; the connection does not. With Config.TLS the certificate of the server
// must have the name or the address that is dialled, unless that says another one.
func Dial(ctx context.Context, network, address string, config Config) (*Conn, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := checkNetwork(network); err != nil {
		return nil, err
	}
	set := config.withDefaults()
	dialer := net.Dialer{KeepAlive: netKeepAliveOff, KeepAliveConfig: set.keepAlive(), Control: set.dialControl()}
	socket, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("eventloop: %w", err)
	}
	if config.TLS == nil {
		return NewConn(socket, config), nil
	}
	config.TLS = namedConfig(config.TLS, network, address)
	return NewTLSConn(ctx, socket, config)
}

// namedConfig returns config with the name that the server's certificate must have, if
// it does not say so itself.
func namedConfig(config *tls.Config, network, address string) *tls.Config {
	if config.ServerName != "" || network == "unix" {
		return config
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return config
	}
	config = config.Clone()
	config.ServerName = host
	return config
}
