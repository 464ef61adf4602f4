package registries

import (
	"log/slog"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Common is what the configuration of every registry has. 0 is the default of a field,
// negative switches off what can be switched off.
type Common struct {
	// ZoneTag is the tag that carries the zone of an instance: Kitex has none, but
	// carries tags. At most 256 B (RegistryNameBytes). Default "zone".
	ZoneTag string
	// RequestTimeout of one request to the registry. Default 3 s (RegistryRequestTimeout).
	RequestTimeout time.Duration
	// BackoffMin and BackoffMax bound the pauses after which something that failed is
	// tried again: they double, and each is drawn between its half and itself, so that
	// a thousand servers do not come back at once. Defaults: 100 ms (RegistryPauseMin)
	// and 5 s (RegistryPauseMax).
	BackoffMin time.Duration
	BackoffMax time.Duration
	// CheckInterval is how often a Resolver compares what it knows with the registry,
	// give or take a tenth, although changes are pushed: one that was restored from a
	// backup, or lost its data, may push nothing. Default 30 s (RegistryCheck). Negative:
	// never.
	CheckInterval time.Duration
	// DeliverInterval is how far apart lists are at least, so that a thousand changes
	// at once make few lists; the first one goes out at once. Default 100 ms
	// (RegistryListPause). Negative: each change makes a list.
	DeliverInterval time.Duration
	// HoldTime is how long instances stay in lists that vanished from the registry, if
	// many vanished within it: two or more and more than a quarter of all, or all. Then
	// it was emptied, or cut off from them, rather than that they stopped, and they
	// announce themselves again meanwhile. Default 1 min (RegistryHold). Negative: lists
	// are what the registry says.
	HoldTime time.Duration
	// MaxInstances of a service in a list, in the order of their names in the registry;
	// the rest is left out, and the log says so. Default 10,000 (Instances).
	MaxInstances int
	// MaxValueBytes is how long the value of an instance may be. One that is longer, or
	// none, says nothing: an instance that is known stays what it was for as long as the
	// registry has it, others are left out. Default 8 KiB (RegistryValueBytes).
	MaxValueBytes int
	// Logger for what operators should know. Default slog.Default().
	Logger *slog.Logger `json:"-"`
}

// CheckCommon tells problem what is wrong with c, a field at a time and all of it: it is
// a part of the Validate of a configuration.
func CheckCommon(c Common, problem func(field, format string, arguments ...any)) {
	if len(c.ZoneTag) > limits.RegistryNameBytes {
		problem("ZoneTag", "%d bytes (limit %d)", len(c.ZoneTag), limits.RegistryNameBytes)
	}
	for _, field := range []struct {
		name  string
		value any
		wrong bool
	}{
		{"RequestTimeout", c.RequestTimeout, c.RequestTimeout < 0},
		{"BackoffMin", c.BackoffMin, c.BackoffMin < 0},
		{"BackoffMax", c.BackoffMax, c.BackoffMax < 0},
		{"MaxInstances", c.MaxInstances, c.MaxInstances < 0},
		{"MaxValueBytes", c.MaxValueBytes, c.MaxValueBytes < 0},
	} {
		if field.wrong {
			problem(field.name, "it cannot be switched off (got %v)", field.value)
		}
	}
	if full := CommonDefaults(c); c.BackoffMin >= 0 && c.BackoffMax >= 0 && full.BackoffMin > full.BackoffMax {
		problem("BackoffMin", "%v is more than BackoffMax, %v", full.BackoffMin, full.BackoffMax)
	}
}

// CommonDefaults returns c with what 0 stands for. Fields that are switched off stay
// negative.
func CommonDefaults(c Common) Common {
	c.RequestTimeout = or(c.RequestTimeout, limits.RegistryRequestTimeout)
	c.BackoffMin = or(c.BackoffMin, limits.RegistryPauseMin)
	c.BackoffMax = or(c.BackoffMax, limits.RegistryPauseMax)
	c.CheckInterval = or(c.CheckInterval, limits.RegistryCheck)
	c.DeliverInterval = or(c.DeliverInterval, limits.RegistryListPause)
	c.HoldTime = or(c.HoldTime, limits.RegistryHold)
	c.MaxInstances = or(c.MaxInstances, limits.Instances)
	c.MaxValueBytes = or(c.MaxValueBytes, limits.RegistryValueBytes)
	if c.ZoneTag == "" {
		c.ZoneTag = "zone"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// or returns value, or its default if it is 0.
func or[T ~int | ~int64](value, otherwise T) T { return limits.Or(value, otherwise, value) }
