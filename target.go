package fulmar

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// unixPathMax is the longest path that fits into sockaddr_un with its
// terminating zero byte.
const unixPathMax = 107

// parseTarget returns what finds the instances of a target: that of one address, or of a
// list, "static:///host:port,host:port", whose instances are known, or of one that is
// looked up. The error joins all problems.
func parseTarget(text string, registries map[string]cluster.Registry) (cluster.Resolver, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme == "unix" {
		if err := checkPeerAddress(text); err != nil {
			return nil, err
		}
		return cluster.Static{{Address: text}}, nil
	}
	registry := registries[scheme]
	if registry == nil && scheme != "static" && scheme != "dns" && scheme != "file" {
		return nil, fmt.Errorf("%.200q: scheme %.40q is not known (known: %s)", text, scheme, knownSchemes(registries))
	}
	name, ok := strings.CutPrefix(rest, "/")
	if !ok || name == "" {
		return nil, fmt.Errorf("%.200q is not %s:///%s", text, scheme, schemeForm(scheme))
	}
	if len(name) > limits.TargetBytes && scheme != "static" {
		return nil, fmt.Errorf("%.200q...: a name of %d bytes (limit %d)", text, len(name), limits.TargetBytes)
	}
	var resolver cluster.Resolver
	var err error
	switch {
	case registry != nil:
		resolver, err = registry.Resolver(name)
		if err == nil && resolver == nil {
			err = errors.New("the registry returned neither a resolver nor an error")
		}
	case scheme == "static":
		return parseList(name)
	case scheme == "dns":
		resolver, err = cluster.NewDNS(cluster.DNSConfig{Name: name})
	default:
		resolver, err = parseFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", text, err)
	}
	return resolver, nil
}

// parseFile returns what finds a service in a folder: "service" in that of the user,
// "folder/service" in one with an absolute path, whose first slash the target has.
func parseFile(name string) (cluster.Resolver, error) {
	var directory cluster.Directory
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		directory.Path, name = "/"+name[:i], name[i+1:]
	}
	return directory.Resolver(name)
}

// knownSchemes lists what a target may be.
func knownSchemes(registries map[string]cluster.Registry) string {
	known := "host:port, unix:///path, unix:@name, static:///host:port,host:port, dns:///host:port, file:///service"
	for _, scheme := range slices.Sorted(maps.Keys(registries)) {
		known += ", " + scheme + ":///service"
	}
	return known
}

// schemeForm says what follows the three slashes.
func schemeForm(scheme string) string {
	switch scheme {
	case "static":
		return "host:port,host:port"
	case "dns":
		return "host:port"
	}
	return "service"
}

// checkRegistries refuses schemes that a target could not have.
func (c ClientConfig) checkRegistries() (problems []error) {
	for _, scheme := range slices.Sorted(maps.Keys(c.Registries)) {
		switch {
		case c.Registries[scheme] == nil:
			problems = append(problems, fmt.Errorf("client config: Registries[%.40q] is nil", scheme))
		case scheme == "static" || scheme == "unix":
			problems = append(problems, fmt.Errorf("client config: Registries[%q]: targets of this scheme need no registry", scheme))
		case scheme == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "":
			problems = append(problems, fmt.Errorf("client config: Registries[%.40q]: a scheme has lower case letters, digits and + - . only", scheme))
		}
	}
	return problems
}

// parseList is parseTarget for a list of addresses.
func parseList(list string) (cluster.Resolver, error) {
	if n := strings.Count(list, ",") + 1; n > limits.TargetInstances {
		return nil, fmt.Errorf("a list of %d addresses (limit %d)", n, limits.TargetInstances)
	}
	var instances cluster.Static
	var problems []error
	places := map[string]int{}
	for element := range strings.SplitSeq(list, ",") {
		place := len(places) + len(problems) + 1
		address, err := parseElement(element)
		if first, ok := places[address]; err == nil && ok {
			err = fmt.Errorf("%q is the same as address %d", element, first)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("address %d: %w", place, err))
			continue
		}
		places[address] = place
		instances = append(instances, cluster.Instance{Address: address})
	}
	return instances, errors.Join(problems...)
}

// parseElement returns an address in a list in the form that equal ones share.
func parseElement(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("empty")
	case strings.HasPrefix(text, "unix:"):
		return "", fmt.Errorf("%.200q: sockets with a path cannot be in a list", text)
	case strings.ContainsAny(text, " \t\r\n"):
		return "", fmt.Errorf("%.200q has a space in it", text)
	}
	if err := checkPeerAddress(text); err != nil {
		return "", err
	}
	_, address, err := parseAddress(text)
	return address, err
}

// checkPeerAddress returns what is wrong with an address to call.
func checkPeerAddress(text string) error {
	network, address, err := parseAddress(text)
	if err == nil && network == "tcp" && strings.HasSuffix(address, ":0") {
		err = fmt.Errorf("%q has port 0, which nobody listens on", text)
	}
	return err
}

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
