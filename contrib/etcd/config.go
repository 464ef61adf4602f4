package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// The defaults of a Config, and what its values may be.
const (
	defaultPrefix         = "kitex/registry-etcd"
	defaultTTL            = 60 * time.Second
	defaultMaxPolicyBytes = 1 << 20
	// prefixBytesMax bounds the prefix, which is a part of every key.
	prefixBytesMax = 256
)

// Secret is a text that is neither printed nor logged, whatever it is a part of.
type Secret = registries.Secret

// Config is how a Registry reaches etcd and what it does there. 0 is the default of a
// field, negative switches off what can be switched off.
type Config struct {
	// Endpoints are the members of the etcd cluster: "10.0.0.1:2379", or
	// "https://10.0.0.1:2379". One at least.
	Endpoints []string
	// TLS, unless it is nil, encrypts the connections. Endpoints need no https:// then.
	TLS *tls.Config `json:"-"`
	// Username and Password, unless both are empty, say who this is.
	Username string
	Password Secret `json:"-"`
	// Prefix of all keys. Default "kitex/registry-etcd", which is that of Kitex.
	Prefix string
	// TTL is how long an instance stays known whose server has vanished without a word,
	// in whole seconds, rounded up. It is renewed three times within that. Default 60 s,
	// as in Kitex: shorter ones lose instances in shorter outages of etcd, longer ones
	// keep dead instances in lists. At least 1 s; etcd may take more.
	TTL time.Duration
	// MaxPolicyBytes is how long a policy document may be. Default 1 MiB.
	MaxPolicyBytes int
	// Common is what all registries have. Of RequestTimeout a third of TTL counts if that
	// is less.
	registries.Common
}

// Validate reports all that is wrong with a Config.
func (c Config) Validate() error {
	var problems []error
	add := func(field, format string, arguments ...any) {
		problems = append(problems, fmt.Errorf("etcd config: %s: %s", field, fmt.Sprintf(format, arguments...)))
	}
	if len(c.Endpoints) == 0 {
		add("Endpoints", "none is given")
	}
	for i, endpoint := range c.Endpoints {
		if err := checkEndpoint(endpoint); err != nil {
			add("Endpoints", "number %d: %v", i+1, err)
		}
	}
	if (c.Username == "") != (c.Password == "") {
		add("Username", "it goes with Password, and one of them is empty")
	}
	if c.Prefix != "" {
		if err := registries.CheckKey(c.Prefix, prefixBytesMax); err != nil {
			add("Prefix", "%v", err)
		}
	}
	if c.TTL != 0 && c.TTL < time.Second {
		add("TTL", "it is at least 1 s (got %v)", c.TTL)
	}
	if c.MaxPolicyBytes < 0 {
		add("MaxPolicyBytes", "it cannot be switched off (got %d)", c.MaxPolicyBytes)
	}
	registries.CheckCommon(c.Common, add)
	return errors.Join(problems...)
}

// withDefaults returns the Config with what 0 stands for.
func (c Config) withDefaults() Config {
	c.Prefix = or(strings.Trim(c.Prefix, "/"), defaultPrefix)
	c.Common = registries.CommonDefaults(c.Common)
	c.TTL = or(c.TTL, defaultTTL)
	c.MaxPolicyBytes = or(c.MaxPolicyBytes, defaultMaxPolicyBytes)
	c.Endpoints = append([]string(nil), c.Endpoints...)
	return c
}

// or returns value, or its default if it is zero.
func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func checkEndpoint(endpoint string) error {
	for _, scheme := range []string{"http://", "https://"} {
		endpoint = strings.TrimPrefix(endpoint, scheme)
	}
	return registries.CheckHostPort(endpoint)
}
