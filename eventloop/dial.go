package eventloop

import (
	"context"
	"fmt"
	"net"
)

// Dial opens a connection to a network "tcp", "tcp4", "tcp6" or "unix". It ends
// with ctx; the connection does not.
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
	return NewConn(socket, config), nil
}
