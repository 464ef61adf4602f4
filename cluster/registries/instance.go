package registries

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// CheckInstance reports what is wrong with an instance that is to be announced: its
// address must be one that others can connect to, host:port or a socket, and its weight
// from 0 to 1,000,000 (RegistryWeightMax).
func CheckInstance(instance cluster.Instance) error {
	if instance.Weight < 0 || instance.Weight > limits.RegistryWeightMax {
		return fmt.Errorf("instance %.80q: weight out of range (0 to %d, got %d)", instance.Address, limits.RegistryWeightMax, instance.Weight)
	}
	if err := checkAddress(instance.Address); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	return nil
}

// CheckService reports what is wrong with the name of a service, which becomes one part of
// a key or path: it is a text as CheckKey wants it, of at most 256 B (RegistryNameBytes),
// without slashes.
func CheckService(service string) error {
	if err := CheckKey(service, limits.RegistryNameBytes); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if strings.Contains(service, "/") || service == "." || service == ".." {
		return fmt.Errorf("service: name with a slash, or of dots only (got %.80q)", service)
	}
	return nil
}

// CheckKey reports what is wrong with a key, or a part of one: it has at least one byte
// and at most bytesMax, and no control characters.
func CheckKey(key string, bytesMax int) error {
	switch {
	case key == "":
		return errors.New("it is empty")
	case len(key) > bytesMax:
		return fmt.Errorf("%d bytes (limit %d)", len(key), bytesMax)
	case hasControls(key):
		return fmt.Errorf("control characters (got %.80q)", key)
	}
	return nil
}

// CheckHostPort reports what is wrong with an address that must have a host and a port from
// 1 to 65535. It does not look the host up.
func CheckHostPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	// "unix:1" would be read as a socket elsewhere.
	if err != nil || host == "unix" || host == "" || len(address) > limits.RegistryAddressBytes || hasControls(host) || strings.ContainsAny(host, " /\\\"'") {
		return fmt.Errorf("address %.80q is not host:port", address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return fmt.Errorf("address %.80q has no port from 1 to 65535", address)
	}
	return nil
}

// FieldsOf returns what a registry has of an instance besides its address, if it knows no
// zones, as those of Kitex: its weight, which is 10 (InstanceWeight) if it has none, and
// its tags with the zone among them as zoneTag. The tags may be those of the instance.
func FieldsOf(instance cluster.Instance, zoneTag string) (weight int, tags map[string]string) {
	weight, tags = or(instance.Weight, limits.InstanceWeight), instance.Tags
	if instance.Zone != "" {
		tags = maps.Clone(tags)
		if tags == nil {
			tags = map[string]string{}
		}
		tags[zoneTag] = instance.Zone
	}
	return weight, tags
}

// InstanceOf is the inverse of FieldsOf: the instance that a registry means. Weights that
// are out of range are brought into it. It returns an error if the address is none; that
// quotes little of it, and nothing that a terminal would obey.
func InstanceOf(address string, weight int, tags map[string]string, zoneTag string) (cluster.Instance, error) {
	if err := checkAddress(address); err != nil {
		return cluster.Instance{}, err
	}
	weight = min(max(weight, 0), limits.RegistryWeightMax)
	return cluster.Instance{Address: address, Weight: weight, Zone: tags[zoneTag], Tags: tags}, nil
}

// checkAddress wants host:port or a socket.
func checkAddress(address string) error {
	if rest, ok := strings.CutPrefix(address, "unix:"); ok {
		return checkSocket(rest)
	}
	return CheckHostPort(address)
}

// checkSocket wants "///path", "@abstract" or what a registry has: "/path".
func checkSocket(rest string) error {
	path := strings.TrimPrefix(rest, "//")
	if len(path) < 2 || len(path) > limits.RegistryAddressBytes || path[0] != '/' && path[0] != '@' || hasControls(path) {
		return fmt.Errorf("address %.80q is not a socket as in unix:///run/x or unix:@x", rest)
	}
	return nil
}

// hasControls tells whether a text has what a terminal, or a registry, would obey.
func hasControls(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' || r == '\ufeff'
	})
}
