package etcd

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/cluster"
)

const (
	// addressBytesMax is longer than any name of a host, with its port, and any path of
	// a socket.
	addressBytesMax = 300
	// weightMax bounds what a registry may say: sums of weights must not overflow.
	weightMax = 1_000_000
	// defaultWeight is what an instance without a weight has, here and in Kitex.
	defaultWeight = 10
	// excerptBytes of a text that somebody else wrote are quoted.
	excerptBytes = 100
)

// checkInstance reports what is wrong with an instance that is to be announced.
func checkInstance(instance cluster.Instance) error {
	if instance.Weight < 0 || instance.Weight > weightMax {
		return fmt.Errorf("instance %s: weight out of range (0 to %d, got %d)", abridge(instance.Address), weightMax, instance.Weight)
	}
	if err := checkAddress(instance.Address); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	return nil
}

// checkAddress wants an address that others can connect to.
func checkAddress(address string) error {
	if rest, ok := strings.CutPrefix(address, "unix:"); ok {
		return checkSocket(rest)
	}
	return checkHostPort(address)
}

// checkSocket wants "///path", "@abstract" or what a registry has: "/path".
func checkSocket(rest string) error {
	path := strings.TrimPrefix(rest, "//")
	if len(path) < 2 || len(path) > addressBytesMax || path[0] != '/' && path[0] != '@' || hasControls(path) {
		return fmt.Errorf("address %q is not a socket as in unix:///run/x or unix:@x", abridge(rest))
	}
	return nil
}

func checkHostPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	// "unix:1" would be read as a socket elsewhere.
	if err != nil || host == "unix" || host == "" || len(address) > addressBytesMax || hasControls(host) || strings.ContainsAny(host, " /\\\"'") {
		return fmt.Errorf("address %q is not host:port", abridge(address))
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return fmt.Errorf("address %q has no port from 1 to 65535", abridge(address))
	}
	return nil
}

// checkService wants a name that is one part of a key.
func checkService(service string) error {
	switch {
	case service == "":
		return fmt.Errorf("service: the name is empty")
	case len(service) > nameBytesMax:
		return fmt.Errorf("service: name of %d bytes (limit %d)", len(service), nameBytesMax)
	case strings.Contains(service, "/") || service == "." || service == ".." || hasControls(service):
		return fmt.Errorf("service: name with a slash, control characters or dots only (got %q)", abridge(service))
	}
	return nil
}

// hasControls tells whether a text has what a terminal, or a registry, would obey.
func hasControls(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' || r == '\ufeff'
	})
}

// boundWeight turns what a registry says into a weight: 0, the default, for none.
func boundWeight(weight int) int { return min(max(weight, 0), weightMax) }

// abridge cuts a text of somebody else's to what a line of a log may quote.
func abridge(text string) string {
	if len(text) <= excerptBytes {
		return text
	}
	return strings.ToValidUTF8(text[:excerptBytes], "") + "..."
}

// zoned returns the tags of an instance with its zone among them.
func zoned(instance cluster.Instance, zoneTag string) map[string]string {
	if instance.Zone == "" {
		return instance.Tags
	}
	tags := make(map[string]string, len(instance.Tags)+1)
	for key, value := range instance.Tags {
		tags[key] = value
	}
	tags[zoneTag] = instance.Zone
	return tags
}
