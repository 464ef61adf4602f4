package fulmar

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// unixPathMax is the longest path that fits into sockaddr_un with its
// terminating zero byte.
const unixPathMax = 107

// parseAddress splits the address of a target or listener into what package net
// takes: "host:port", "unix:///path", "unix:@abstract".
func parseAddress(text string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return parseUnix(text, path)
	}
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		return "", "", fmt.Errorf("%q: scheme %q is not known (known: host:port, unix:///path, unix:@name)", text, scheme)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", "", fmt.Errorf("%q is not host:port", text)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 0 || number > 65535 {
		return "", "", fmt.Errorf("%q: port %q is not a number from 0 to 65535", text, port)
	}
	return "tcp", net.JoinHostPort(host, port), nil
}

func parseUnix(text, path string) (network, address string, err error) {
	if !strings.HasPrefix(path, "@") {
		absolute, ok := strings.CutPrefix(path, "//")
		if !ok || !strings.HasPrefix(absolute, "/") {
			return "", "", fmt.Errorf("%q is neither unix:///absolute/path nor unix:@name", text)
		}
		path = absolute
	}
	if len(path) < 2 || len(path) > unixPathMax {
		return "", "", fmt.Errorf("%q: a socket path has 2 to %d bytes (got %d)", text, unixPathMax, len(path))
	}
	return "unix", path, nil
}
