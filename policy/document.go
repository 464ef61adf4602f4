// Package policy says what becomes of a call that may fail, be slow or be one too many:
// timeouts, retries, hedging, breakers and limits, as plain data and as state machines
// that are told what time it is. It waits for nothing and reaches nothing.
package policy

import (
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
)

// Document is everything that can change while a program runs. Its zero value changes
// nothing. In every number and duration 0 is the default that the field gives, and a
// negative value switches it off; where nothing can be switched off, Validate refuses it.
//
// As JSON, or YAML, fields have the names that they have here, in lower case with
// underscores (retry_budget), Method's stand among those of Client, durations are text
// ("300ms"), and codes a list of names:
//
//	{
//	  "client": {
//	    "timeout": "2s",
//	    "retry": {"attempts": 3, "backoff_min": "20ms"},
//	    "methods": {"Orders.list": {"retry": {"idempotent": true}}}
//	  },
//	  "server": {"limit": {"per_second": 5000}}
//	}
type Document struct {
	// Client is for the calls that a client makes.
	Client Client
	// Server is for the calls that a server gets.
	Server Server
}

// Client is what holds for the calls to one target.
type Client struct {
	// Method is what holds for all methods.
	Method
	// Methods are what holds for some of them, by the name of a service ("Orders") or of
	// a method ("Orders.place", in Protobuf "shop.v1.Orders/Place"). What is set for the
	// method counts, else what is set for its service, else what is set for all, field by
	// field. A boolean that is set cannot be taken back for less. At most 1,000
	// (PolicyMethods).
	Methods map[string]Method
	// Balancing is how calls are shared out among instances.
	Balancing cluster.Balancing
	// Ejection is when an instance is left alone.
	Ejection cluster.Ejection
	// RetryBudget bounds the attempts besides the first ones, of all calls together.
	RetryBudget RetryBudget
	// TargetBreaker is for all calls to the target together, besides those of methods.
	TargetBreaker Breaker
}

// Method is what holds for the calls of one method.
type Method struct {
	// Timeout of a call with all its attempts, unless the option Timeout says otherwise. Of
	// a stream from when it is opened to its end, if it is set for the method or its service:
	// one that is set for all methods is for calls. Default: ClientConfig.Timeout, and none
	// for streams.
	Timeout time.Duration
	// Retry is when a call is tried again that has failed.
	Retry Retry
	// Hedge is when a call is tried a second time although the first attempt goes on.
	Hedge Hedge
	// Breaker refuses calls of a method that fails: each method has one of its own.
	Breaker Breaker
}

// Retry is when a call is tried again that has failed. A call that certainly was not
// executed is tried again if Attempts allow, unless its code says that the call itself is
// at fault, as invalid_argument does; with Idempotent, those with Codes are as well.
type Retry struct {
	// Attempts of a call at most, the first one included. Default: 2
	// (RetryAttempts), and 1 where there is one instance only. Negative: 1. At most 10
	// (RetryAttemptsMax).
	Attempts int
	// Idempotent says that the method may be executed more than once: then a call that
	// may have been executed is tried again too.
	Idempotent bool
	// Codes with which a call is tried again. Default: unavailable and
	// resource_exhausted, and with Idempotent deadline_exceeded of an attempt too.
	Codes Codes
	// AttemptTimeout of each attempt of a call. Default: what is left of the call's time.
	AttemptTimeout time.Duration
	// BackoffMin is how long at most a call waits before its first further attempt: the
	// wait is drawn between 0 and that, which doubles for each further one, up to
	// BackoffMax. A call that was not executed, and that can go to another instance, does
	// not wait for its first further attempt. Negative: no wait at all. Defaults: 20 ms
	// (RetryBackoffMin) and 1 s (RetryBackoffMax).
	BackoffMin time.Duration
	BackoffMax time.Duration
	// SameInstance lets further attempts go where the last one failed. Default: to others
	// as long as there are any.
	SameInstance bool
	// IgnoreChain tries again although the caller of the handler that makes this call
	// tries again itself. Default: only the first client of a chain does, because
	// attempts multiply; what was not sent at all is no load, and tried again anyway.
	IgnoreChain bool
}

// RetryBudget bounds the attempts besides the first ones: retries and hedges, of all
// calls of a client together. What was not sent at all needs none of it. Of what calls do
// not use, 64 (RetriesSaved) or a second's PerSecond are kept for later, whichever is more.
type RetryBudget struct {
	// Percent of the calls. Default: 10 (RetryPercent). Negative: none.
	Percent int
	// PerSecond are allowed besides. Default: 10/s (RetriesPerSecond). Negative: none.
	PerSecond int
}

// Hedge is when a call is tried a second time although the first attempt goes on. It
// needs Retry.Idempotent, and room in the RetryBudget.
type Hedge struct {
	// After is how long an attempt may take until another one begins beside it, at
	// another instance. The first answer counts, and the others are canceled. Default:
	// never.
	After time.Duration
	// Attempts that run beside each other at most, the first one included. Default: 2
	// (HedgeAttempts). In all there are as many as that or as Retry.Attempts, whichever is
	// more.
	Attempts int
}

// Breaker refuses calls at once while too many of them fail.
type Breaker struct {
	// FailurePercent of the calls within Window, of MinCalls at least, open the breaker.
	// Default: never.
	FailurePercent int
	// MinCalls is how many calls within Window say something. Default: 200 (BreakerCalls).
	MinCalls int
	// Window is how long a call counts, within a tenth of it. Default: 10 s
	// (BreakerWindow).
	Window time.Duration
	// Pause is how long an open breaker refuses all calls, until it lets Probes through.
	// Default: 5 s (BreakerPause).
	Pause time.Duration
	// Probes is how many calls in a row must succeed before it closes; one of them runs
	// at a time. Default: one.
	Probes int
	// Codes that count as failures. Default: unknown, deadline_exceeded,
	// resource_exhausted, internal, unavailable and data_loss. Declared exceptions and
	// business errors never do.
	Codes Codes
}

// Server is what holds for the calls that a server gets.
type Server struct {
	// Limit is for all calls together.
	Limit Limit
	// CallerLimit is for the calls of each caller, known by its TLS identity, or by its
	// address without one. 10,000 (Callers) are told apart; if more of them are busy, the
	// others share limits.
	CallerLimit Limit
	// Methods are limits for some methods, by names as in Client.Methods: for all calls
	// of a service together, and for those of a method.
	Methods map[string]Limit
	// Adaptive finds out how many calls may run at once.
	Adaptive Adaptive
	// Connections is how many connections may be open; more are closed at once, those that
	// are open stay. Default: what the configuration of the server says, which it cannot
	// exceed.
	Connections int
	// Queue bounds how calls wait to run. Each field that is 0 is what the configuration of
	// the server says.
	Queue Queue
}

// Queue bounds how calls wait to run, on a server that is overloaded or bounds the calls
// that run (ServerConfig.MaxRunningCalls). What would wait for longer is refused with
// ResourceExhausted, not executed.
type Queue struct {
	// WaitPercent is how much of its time a call may wait while the server is overloaded, in
	// percent: ServerConfig.MaxWaitPercent. Negative: all of it. It switches nothing on or
	// off.
	WaitPercent int
	// Calls is how many may wait, and Time how long each, where ServerConfig.MaxRunningCalls
	// bounds those that run: MaxQueuedCalls and MaxQueueTime. Negative: any number, and until
	// its time is over. A queue that refuses calls and is never short is made shorter.
	Calls int
	Time  time.Duration
}

// Limit bounds calls. What is more is refused with ResourceExhausted, not executed.
type Limit struct {
	// PerSecond is how many calls may begin in a second. Default: any number.
	PerSecond int
	// Burst is how many may begin at once after a quiet time. Default: 10
	// (BurstPercent) in a hundred of PerSecond, and one at least.
	Burst int
	// Running is how many may run at once. A stream runs as long as it lasts. Default: any
	// number.
	Running int
}

// Adaptive finds out how many calls may run at once, by how their latency grows with
// their number. It is for handlers that wait for something which does less the more is
// asked of it: a database, a disk, a lock. A server whose processors are busy notices
// that without it. Streams are refused while there is no room to begin, and hold no place
// while they are open: Limit.Running bounds those.
type Adaptive struct {
	// Enabled switches it on.
	Enabled bool
	// MinRunning and MaxRunning bound what it finds. Defaults: 4
	// (AdaptiveRunningMin) and 1,000 (AdaptiveRunningMax).
	MinRunning int
	MaxRunning int
}
