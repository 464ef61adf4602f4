package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// The defaults of a Config, and what its values may be.
const (
	defaultPrefix          = "kitex/registry-etcd"
	defaultTTL             = 60 * time.Second
	defaultRequestTimeout  = 3 * time.Second
	defaultBackoffMin      = 100 * time.Millisecond
	defaultBackoffMax      = 5 * time.Second
	defaultCheckInterval   = 30 * time.Second
	defaultDeliverInterval = 100 * time.Millisecond
	defaultHoldTime        = 60 * time.Second
	defaultMaxInstances    = 10_000
	defaultMaxValueBytes   = 8 << 10
	defaultMaxPolicyBytes  = 1 << 20
	defaultZoneTag         = "zone"

	// nameBytesMax bounds names of services and prefixes: they are parts of every key.
	nameBytesMax = 256
)

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
	// ZoneTag is the tag that carries the zone of an instance: Kitex has none, but
	// carries tags. Default "zone".
	ZoneTag string
	// TTL is how long an instance stays known whose server has vanished without a word,
	// in whole seconds, rounded up. It is renewed three times within that. Default 60 s,
	// as in Kitex: shorter ones lose instances in shorter outages of etcd, longer ones
	// keep dead instances in lists. At least 1 s; etcd may take more.
	TTL time.Duration
	// RequestTimeout of one request to etcd, of which a third of TTL counts if that is
	// less. Default 3 s.
	RequestTimeout time.Duration
	// BackoffMin and BackoffMax bound the pauses after which something that failed is
	// tried again: they double, and each is drawn between its half and itself, so that
	// a thousand servers do not come back at once. Defaults 100 ms and 5 s.
	BackoffMin time.Duration
	BackoffMax time.Duration
	// CheckInterval is how often a Resolver compares what it knows with etcd, although
	// changes are pushed: an etcd that was restored from a backup, or lost its data,
	// pushes nothing. Default 30 s. Negative: never.
	CheckInterval time.Duration
	// DeliverInterval is how far apart lists are at least, so that a thousand changes
	// at once make few lists; the first one goes out at once. Default 100 ms. Negative:
	// each change makes a list.
	DeliverInterval time.Duration
	// HoldTime is how long instances stay in lists that vanished from etcd, if many
	// vanished within it: two or more and more than a quarter of all, or all. Then etcd
	// was emptied, or cut off from them, rather than that they stopped, and they announce
	// themselves again meanwhile. Default 60 s. Negative: lists are what etcd says.
	HoldTime time.Duration
	// MaxInstances of a service in a list, in the order of their keys; the rest is left
	// out, and the log says so. Default 10,000.
	MaxInstances int
	// MaxValueBytes is how long the value of an instance may be; instances with longer
	// ones are left out. Default 8 KiB.
	MaxValueBytes int
	// MaxPolicyBytes is how long a policy document may be. Default 1 MiB.
	MaxPolicyBytes int
	// Logger for what operators should know. Default slog.Default().
	Logger *slog.Logger `json:"-"`
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
		if !isEndpoint(endpoint) {
			add("Endpoints", "number %d is not host:port (got %q)", i+1, abridge(endpoint))
		}
	}
	if (c.Username == "") != (c.Password == "") {
		add("Username", "it goes with Password, and one of them is empty")
	}
	if err := checkPrefix(c.Prefix); err != nil {
		add("Prefix", "%v", err)
	}
	if len(c.ZoneTag) > nameBytesMax {
		add("ZoneTag", "%d bytes (limit %d)", len(c.ZoneTag), nameBytesMax)
	}
	if c.TTL != 0 && c.TTL < time.Second {
		add("TTL", "it is at least 1 s (got %v)", c.TTL)
	}
	for _, field := range []struct {
		name  string
		value time.Duration
	}{{"RequestTimeout", c.RequestTimeout}, {"BackoffMin", c.BackoffMin}, {"BackoffMax", c.BackoffMax}} {
		if field.value < 0 {
			add(field.name, "it cannot be switched off (got %v)", field.value)
		}
	}
	for _, field := range []struct {
		name  string
		value int
	}{{"MaxInstances", c.MaxInstances}, {"MaxValueBytes", c.MaxValueBytes}, {"MaxPolicyBytes", c.MaxPolicyBytes}} {
		if field.value < 0 {
			add(field.name, "it cannot be switched off (got %d)", field.value)
		}
	}
	if full := c.withDefaults(); c.BackoffMin >= 0 && c.BackoffMax >= 0 && full.BackoffMin > full.BackoffMax {
		add("BackoffMin", "%v is more than BackoffMax, %v", full.BackoffMin, full.BackoffMax)
	}
	return errors.Join(problems...)
}

// withDefaults returns the Config with what 0 stands for.
func (c Config) withDefaults() Config {
	c.Prefix = or(strings.Trim(c.Prefix, "/"), defaultPrefix)
	c.ZoneTag = or(c.ZoneTag, defaultZoneTag)
	c.TTL = or(c.TTL, defaultTTL)
	c.RequestTimeout = or(c.RequestTimeout, defaultRequestTimeout)
	c.BackoffMin = or(c.BackoffMin, defaultBackoffMin)
	c.BackoffMax = or(c.BackoffMax, defaultBackoffMax)
	c.CheckInterval = or(c.CheckInterval, defaultCheckInterval)
	c.DeliverInterval = or(c.DeliverInterval, defaultDeliverInterval)
	c.HoldTime = or(c.HoldTime, defaultHoldTime)
	c.MaxInstances = or(c.MaxInstances, defaultMaxInstances)
	c.MaxValueBytes = or(c.MaxValueBytes, defaultMaxValueBytes)
	c.MaxPolicyBytes = or(c.MaxPolicyBytes, defaultMaxPolicyBytes)
	c.Endpoints = append([]string(nil), c.Endpoints...)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
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

func isEndpoint(endpoint string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		endpoint = strings.TrimPrefix(endpoint, scheme)
	}
	return checkHostPort(endpoint) == nil
}

func checkPrefix(prefix string) error {
	if len(prefix) > nameBytesMax {
		return fmt.Errorf("%d bytes (limit %d)", len(prefix), nameBytesMax)
	}
	if hasControls(prefix) {
		return fmt.Errorf("control characters (got %q)", prefix)
	}
	return nil
}
