package cluster

import "time"

// Balancing says how calls are shared out among instances. In every number and duration
// 0 is the default that the field gives, and a negative value switches it off.
type Balancing struct {
	// Method of choosing. Default LeastLoaded.
	Method Method
	// HashKey names the metadata of a call whose value chooses the instance with
	// ConsistentHash. A call without it goes to any instance.
	HashKey string
	// Zone of the caller. Instances in the same zone are preferred as long as they can
	// take the calls: if they are fewer than their share, or too many of them are
	// ejected, the other zones take the rest. Default: zones do not count.
	Zone string
	// Subset is how many of the instances this client uses: each client others, and the
	// same ones again when few instances come and go. Default: all, which means a
	// connection from each client to each instance. With ConsistentHash it is all in any
	// case, because clients must agree whose a key is; with Zone it is as many there, and
	// as many of the others for what spills over.
	Subset int
	// SlowStart is how long an instance that is new gets less than its share, growing
	// evenly from a tenth. Instances of the first list are not new. Default: it gets its
	// share at once.
	SlowStart time.Duration
}

// Method is how an instance is chosen for a call.
type Method string

// The methods.
const (
	// LeastLoaded takes the better of two instances that are drawn at random by their
	// weights: the one on which a call is expected to take less time, by its latency
	// lately and the calls in flight there.
	LeastLoaded Method = "least_loaded"
	// RoundRobin takes instances in turn, by their weights and smoothly: one of
	// weight 5 does not get five calls in a row.
	RoundRobin Method = "round_robin"
	// Random draws an instance by weight.
	Random Method = "random"
	// ConsistentHash takes the same instance for the same key, while few keys move when
	// instances come and go, and no instance gets more than a quarter above its share
	// of the calls in flight, or 4 (HashCallsMin) if that is more.
	ConsistentHash Method = "consistent_hash"
	// LeastRequests takes the instance with the fewest calls in flight of all, by
	// weight. It looks at each, which takes 1 µs for a thousand.
	LeastRequests Method = "least_requests"
)

// Ejection says when an instance is left alone because it fails. An instance that refuses
// connections is in any case. In every number and duration 0 is the default that the
// field gives, and a negative value switches it off.
type Ejection struct {
	// FailurePercent of the calls to an instance within Window, of MinCalls at least,
	// that fail by its fault or err eject it, if the share of all others together is not
	// half as high. Default: 50 (EjectFailurePercent). Off: no failure does, whatever
	// Consecutive says.
	FailurePercent int
	// MinCalls is how many calls within Window say something. Default: 20 (EjectMinCalls).
	MinCalls int
	// Consecutive failures, without a call between them that did not fail, eject it too: an
	// instance that has stopped gets few calls, and those that it answered before would
	// speak for it for as long as Window. Default: 5 (EjectConsecutive).
	Consecutive int
	// Window is how long a failure counts. Default: 10 s (EjectWindow).
	Window time.Duration
	// PauseMin and PauseMax bound how long an instance is left alone: the pause doubles
	// with every further failure. Defaults: 1 s (EjectPauseMin) and 30 s (EjectPauseMax).
	PauseMin time.Duration
	PauseMax time.Duration
	// MaxEjectedPercent is how many of the instances may be ejected because their calls
	// fail: if more do, the fault is somewhere else, and leaving them alone would put
	// all load on the rest. Then those that fail get calls as before; those that refuse
	// connections do not. Default: 50 (EjectMaxPercent).
	MaxEjectedPercent int
}
