package zookeeper

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
	defaultSessionTimeout  = 30 * time.Second
	defaultRequestTimeout  = 3 * time.Second
	defaultBackoffMin      = 100 * time.Millisecond
	defaultBackoffMax      = 5 * time.Second
	defaultCheckInterval   = 30 * time.Second
	defaultDeliverInterval = 100 * time.Millisecond
	defaultHoldTime        = 60 * time.Second
	defaultMaxInstances    = 10_000
	defaultMaxValueBytes   = 8 << 10
	defaultZoneTag         = "zone"

	// nameBytesMax bounds names of services and the root: they are parts of every path.
	nameBytesMax = 256
)

// Config is how a Registry reaches ZooKeeper and what it does there. 0 is the default of
// a field, negative switches off what can be switched off.
type Config struct {
	// Servers are those of the ensemble, as host:port. One at least. Names are looked up
	// at every connection.
	Servers []string
	// TLS, unless it is nil, encrypts the connections.
	TLS *tls.Config `json:"-"`
	// User and Password, unless both are empty, are a digest identity: nodes that are
	// made belong to it alone, as with Kitex, so readers need the same one.
	User     string
	Password Secret `json:"-"`
	// Root is the path below which services are, such as "/prod". Default: services are
	// at the top, as with Kitex.
	Root string
	// ZoneTag is the tag that carries the zone of an instance: Kitex has none, but
	// carries tags. Default "zone".
	ZoneTag string
	// SessionTimeout is how long an instance stays known whose server has vanished
	// without a word; ZooKeeper bounds it. A sign of life goes out three times within
	// it. Default 30 s: shorter ones lose instances in shorter outages, longer ones keep
	// dead instances in lists. At least 100 ms.
	SessionTimeout time.Duration
	// RequestTimeout of one request, and of connecting. Default 3 s.
	RequestTimeout time.Duration
	// BackoffMin and BackoffMax bound the pauses after which something that failed is
	// tried again: they double, and each is drawn between its half and itself, so that
	// a thousand servers do not come back at once. Connecting pauses for a second more.
	// Defaults 100 ms and 5 s.
	BackoffMin time.Duration
	BackoffMax time.Duration
	// CheckInterval is how often lists are compared with ZooKeeper although changes are
	// pushed, as a precaution. Default 30 s. Negative: never. Announcements are looked
	// after three times within SessionTimeout.
	CheckInterval time.Duration
	// DeliverInterval is how far apart lists are at least, so that a thousand changes
	// at once make few lists; the first one goes out at once. Default 100 ms. Negative:
	// each change makes a list.
	DeliverInterval time.Duration
	// HoldTime is how long instances stay in lists that vanished from ZooKeeper, if many
	// vanished within it: two or more and more than a quarter of all, or all. Then
	// ZooKeeper was emptied, or cut off from them, rather than that they stopped, and
	// they announce themselves again meanwhile. Default 60 s. Negative: lists are what
	// ZooKeeper says.
	HoldTime time.Duration
	// MaxInstances of a service in a list, in the order of their names; the rest is left
	// out, and the log says so. Default 10,000.
	MaxInstances int
	// MaxValueBytes is how long the data of an instance may be; instances with longer
	// ones are left out. Default 8 KiB.
	MaxValueBytes int
	// Logger for what operators should know. Default slog.Default().
	Logger *slog.Logger `json:"-"`
}

// Validate reports all that is wrong with a Config.
func (c Config) Validate() error {
	var problems []error
	add := func(field, format string, arguments ...any) {
		problems = append(problems, fmt.Errorf("zookeeper config: %s: %s", field, fmt.Sprintf(format, arguments...)))
	}
	if len(c.Servers) == 0 {
		add("Servers", "none is given")
	}
	for i, server := range c.Servers {
		if checkHostPort(server) != nil {
			add("Servers", "number %d is not host:port (got %q)", i+1, abridge(server))
		}
	}
	if (c.User == "") != (c.Password == "") {
		add("User", "it goes with Password, and one of them is empty")
	}
	if strings.Contains(c.User, ":") {
		add("User", "a colon ends it")
	}
	if err := checkRoot(c.Root); err != nil {
		add("Root", "%v", err)
	}
	if len(c.ZoneTag) > nameBytesMax {
		add("ZoneTag", "%d bytes (limit %d)", len(c.ZoneTag), nameBytesMax)
	}
	if c.SessionTimeout != 0 && c.SessionTimeout < 100*time.Millisecond {
		add("SessionTimeout", "it is at least 100 ms (got %v)", c.SessionTimeout)
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
	}{{"MaxInstances", c.MaxInstances}, {"MaxValueBytes", c.MaxValueBytes}} {
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
	c.Root = strings.TrimRight(c.Root, "/")
	c.ZoneTag = or(c.ZoneTag, defaultZoneTag)
	c.SessionTimeout = or(c.SessionTimeout, defaultSessionTimeout)
	c.RequestTimeout = or(c.RequestTimeout, defaultRequestTimeout)
	c.BackoffMin = or(c.BackoffMin, defaultBackoffMin)
	c.BackoffMax = or(c.BackoffMax, defaultBackoffMax)
	c.CheckInterval = or(c.CheckInterval, defaultCheckInterval)
	c.DeliverInterval = or(c.DeliverInterval, defaultDeliverInterval)
	c.HoldTime = or(c.HoldTime, defaultHoldTime)
	c.MaxInstances = or(c.MaxInstances, defaultMaxInstances)
	c.MaxValueBytes = or(c.MaxValueBytes, defaultMaxValueBytes)
	c.Servers = append([]string(nil), c.Servers...)
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

// checkRoot wants nothing, or an absolute path of names.
func checkRoot(root string) error {
	if root == "" {
		return nil
	}
	if root[0] != '/' || len(root) > nameBytesMax {
		return fmt.Errorf("it is an absolute path of at most %d bytes (got %q)", nameBytesMax, abridge(root))
	}
	for _, name := range strings.Split(strings.Trim(root, "/"), "/") {
		if err := checkService(name); err != nil {
			return fmt.Errorf("part of %q: %w", abridge(root), err)
		}
	}
	return nil
}
