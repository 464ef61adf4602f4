package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// The categories of Kitex's settings, which are the last parts of their keys.
const (
	kitexTimeout = "rpc_timeout"
	kitexRetry   = "retry"
	kitexBreaker = "circuit_break"
	kitexLimit   = "limit"
)

// everyMethod is what Kitex calls all methods.
const everyMethod = "*"

// What Kitex takes, and what is taken here: a policy with more is a mistake.
const (
	kitexFailureRetriesMax = 5
	kitexBackupRetriesMax  = 2
	kitexMillisecondsMax   = 24 * 60 * 60 * 1000
	kitexMethodsMax        = 10_000
)

// The types of a retry policy in Kitex.
const (
	kitexFailureRetry = 0
	kitexBackupRetry  = 1
	kitexMixedRetry   = 2
)

type timeoutSetting struct {
	RPCMilliseconds     int64 `json:"rpc_timeout_ms"`
	ConnectMilliseconds int64 `json:"conn_timeout_ms"`
}

type breakerSetting struct {
	Enable     bool    `json:"enable"`
	ErrorRate  float64 `json:"err_rate"`
	MinSamples int64   `json:"min_sample"`
}

type limitSetting struct {
	Connections int64 `json:"connection_limit"`
	PerSecond   int64 `json:"qps_limit"`
}

type retrySetting struct {
	Enable  bool            `json:"enable"`
	Type    int             `json:"type"`
	Failure *failureSetting `json:"failure_policy"`
	Backup  *failureSetting `json:"backup_policy"`
	Mixed   *failureSetting `json:"mixed_policy"`
}

// failureSetting has the fields of all three policies, of which each has some.
type failureSetting struct {
	DelayMilliseconds int64       `json:"retry_delay_ms"`
	Stop              stopSetting `json:"stop_policy"`
	Backoff           *struct {
		Type  string             `json:"backoff_type"`
		Items map[string]float64 `json:"cfg_items"`
	} `json:"backoff_policy"`
	SameNode bool            `json:"retry_same_node"`
	Extra    json.RawMessage `json:"extra"`
}

type stopSetting struct {
	Retries              int64 `json:"max_retry_times"`
	DurationMilliseconds int64 `json:"max_duration_ms"`
	DisableChainStop     bool  `json:"disable_chain_stop"`
	Breaker              *struct {
		ErrorRate float64 `json:"error_rate"`
	} `json:"cb_policy"`
}

// kitexValue is the value of one key.
type kitexValue struct {
	timeouts map[string]timeoutSetting
	retries  map[string]retrySetting
	breakers map[string]breakerSetting
	limit    *limitSetting
	// broken is why it cannot be read; then there is nothing else.
	broken error
}

// parseKitex reads the value of a category; that of one that is not known is empty.
func parseKitex(category string, value []byte) (parsed kitexValue, err error) {
	switch category {
	case kitexTimeout:
		err = json.Unmarshal(value, &parsed.timeouts)
	case kitexRetry:
		err = json.Unmarshal(value, &parsed.retries)
	case kitexBreaker:
		err = json.Unmarshal(value, &parsed.breakers)
	case kitexLimit:
		err = json.Unmarshal(value, &parsed.limit)
	}
	if err != nil {
		return kitexValue{}, fmt.Errorf("kitex config: %w", err)
	}
	if n := max(len(parsed.timeouts), len(parsed.retries), len(parsed.breakers)); n > kitexMethodsMax {
		return kitexValue{}, fmt.Errorf("kitex config: %d methods (limit %d)", n, kitexMethodsMax)
	}
	return parsed, nil
}

// translation makes a policy document of Kitex's settings, and notes what it leaves out.
type translation struct {
	prefix   string
	services []string
	document policy.Document
	problems []Problem
	// bytes is how long the document is at most.
	bytes int
}

func (t *translation) problem(category, method, field, format string, arguments ...any) {
	path := field
	if method != "" {
		path = fmt.Sprintf("%.80s", method) + "." + field
	}
	t.problems = append(t.problems, Problem{t.prefix + category, path, fmt.Sprintf(format, arguments...)})
}

// all translates the values of all categories. A method has what is set for it in a
// category, else what is set there for all: in Kitex an entry takes the place of the whole
// one for all, so nothing of a method may be left to what a policy inherits.
func (t *translation) all(values map[string]kitexValue) {
	for _, category := range slices.Sorted(maps.Keys(values)) {
		switch category {
		case kitexTimeout, kitexRetry, kitexBreaker:
		case kitexLimit:
			t.limit(values[category].limit)
		default:
			t.problem(fmt.Sprintf("%.80s", category), "", "(all)", "there is no equivalent of it")
		}
	}
	timeouts, retries, breakers := values[kitexTimeout].timeouts, values[kitexRetry].retries, values[kitexBreaker].breakers
	named := map[string]string{} // to a category that it is in
	for name := range timeouts {
		named[name] = kitexTimeout
	}
	for name := range retries {
		named[name] = kitexRetry
	}
	for name := range breakers {
		named[name] = kitexBreaker
	}
	delete(named, everyMethod)
	everyone := t.method(everyMethod, timeouts, retries, breakers)
	methods := make(map[string]kitexMethod, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if t.known(named[name], name) {
			methods[name] = t.method(name, timeouts, retries, breakers)
		}
	}
	t.release(&everyone, methods)
	t.document.Client.Method = everyone.policy
	t.bytes = sizeOf(t.document)
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		t.add(named[name], name, alone(methods[name].policy, everyone.policy))
	}
}

// kitexMethod is what is set for a method.
type kitexMethod struct {
	policy policy.Method
	// retryField is where in the value of kitexRetry that is which it has of it.
	retryField string
}

func (t *translation) method(name string, timeouts map[string]timeoutSetting, retries map[string]retrySetting, breakers map[string]breakerSetting) (m kitexMethod) {
	m.policy.Timeout, _ = inForce(timeouts, name, t.timeout)
	m.policy.Breaker, _ = inForce(breakers, name, t.breaker)
	if retry, ok := inForce(retries, name, t.retry); ok {
		m.policy.Retry, m.policy.Hedge, m.retryField = retry.retry, retry.hedge, retry.field
		_, ownTimeout := timeouts[name]
		_, ownRetry := retries[name]
		t.stretch(&m.policy, name, retry, ownTimeout || ownRetry)
	}
	return m
}

// inForce returns what translate makes of the setting of a method, or else of that for all.
// One that translate refuses is no setting, as in Kitex. Problems of that for all are noted
// once, with it: own says whether the setting is that of the method.
func inForce[T, V any](settings map[string]T, method string, translate func(method string, setting T, own bool) (V, bool)) (value V, ok bool) {
	if setting, has := settings[method]; has {
		if value, ok = translate(method, setting, true); ok || method == everyMethod {
			return value, ok
		}
	}
	if setting, has := settings[everyMethod]; has {
		return translate(method, setting, false)
	}
	return value, false
}

// known reports whether a policy can name a method, and notes if not.
func (t *translation) known(category, method string) bool {
	names := t.names(method)
	if len(names) == 0 {
		t.problem(category, method, "(all)", "no services are given that the method may be of")
		return false
	}
	for _, name := range names {
		document := policy.Document{Client: policy.Client{Methods: map[string]policy.Method{name: {}}}}
		err := document.Validate()
		if err == nil && strings.ContainsAny(method, "./") {
			err = errors.New("the name of a method has neither dots nor slashes")
		}
		if err != nil {
			t.problem(category, method, "(all)", "%v", err)
			return false
		}
	}
	return true
}

// names returns the names that a method of Kitex's may have. A policy names a method once,
// whether its service was given as one in Thrift or in Protobuf.
func (t *translation) names(method string) []string {
	var names []string
	given := map[string]bool{}
	for _, service := range t.services {
		plain := strings.TrimSuffix(service, "/")
		switch {
		case given[plain]:
		case plain != service, strings.Contains(service, "."):
			names = append(names, plain+"/"+method)
		default:
			names = append(names, plain+"."+method)
		}
		given[plain] = true
	}
	return names
}

// release takes what a method has not, and a policy cannot take back, from what holds for
// all: those that want it have it anyway, and without it less is tried again and at other
// instances.
func (t *translation) release(everyone *kitexMethod, methods map[string]kitexMethod) {
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		r := methods[name].policy.Retry
		if r.Attempts <= 1 {
			continue // it is not tried again, whatever holds then
		}
		const reason = "%.80q has it not, and a policy cannot take it back: only methods with settings of their own have it"
		if everyone.policy.Retry.SameInstance && !r.SameInstance {
			everyone.policy.Retry.SameInstance = false
			t.problem(kitexRetry, everyMethod, everyone.retryField+".retry_same_node", reason, name)
		}
		if everyone.policy.Retry.IgnoreChain && !r.IgnoreChain {
			everyone.policy.Retry.IgnoreChain = false
			t.problem(kitexRetry, everyMethod, everyone.retryField+".stop_policy.disable_chain_stop", reason, name)
		}
	}
}

// alone returns what a document has to say of a method so that m holds for it, and nothing
// of what holds for all methods. What the two have alike is left out: a timeout that is set
// by the name of a method holds for streams too.
func alone(m, everyone policy.Method) policy.Method {
	off := func(value *time.Duration, inherited time.Duration) {
		if *value == 0 && inherited > 0 {
			*value = -1
		}
	}
	off(&m.Retry.AttemptTimeout, everyone.Retry.AttemptTimeout)
	off(&m.Hedge.After, everyone.Hedge.After)
	if m.Timeout == everyone.Timeout {
		m.Timeout = 0
	}
	return m
}

// add puts a method into the document, if there is room.
func (t *translation) add(category, name string, method policy.Method) {
	names := t.names(name)
	part := policy.Document{Client: policy.Client{Methods: map[string]policy.Method{}}}
	for _, full := range names {
		part.Client.Methods[full] = method
	}
	room, bytes := limits.PolicyMethods-len(t.document.Client.Methods), sizeOf(part)
	if len(names) > room || t.bytes+bytes > limits.PolicyBytes {
		t.problem(category, name, "(all)", "a policy has no room for more (limit %d methods, %d bytes): what is set for %q holds", limits.PolicyMethods, limits.PolicyBytes, everyMethod)
		return
	}
	t.bytes += bytes
	if t.document.Client.Methods == nil {
		t.document.Client.Methods = map[string]policy.Method{}
	}
	maps.Copy(t.document.Client.Methods, part.Client.Methods)
}

// sizeOf returns how long a document is as text.
func sizeOf(document policy.Document) int {
	text, _ := document.MarshalJSON() // it does not fail
	return len(text)
}

func (t *translation) limit(limit *limitSetting) {
	if limit == nil {
		return
	}
	switch {
	case limit.Connections > limits.PolicyCountMax:
		t.problem(kitexLimit, "", "connection_limit", "out of range (limit %d, got %d)", limits.PolicyCountMax, limit.Connections)
	case limit.Connections > 0:
		t.document.Server.Connections = int(limit.Connections)
	}
	switch {
	case limit.PerSecond > limits.PolicyCountMax:
		t.problem(kitexLimit, "", "qps_limit", "out of range (limit %d, got %d)", limits.PolicyCountMax, limit.PerSecond)
	case limit.PerSecond > 0:
		t.document.Server.Limit.PerSecond = int(limit.PerSecond)
	case limit.PerSecond < 0:
		t.document.Server.Limit.PerSecond = -1
	}
}

// milliseconds translates a time, and notes one that makes no sense.
func (t *translation) milliseconds(category, method, field string, n, least int64, own bool) (duration time.Duration, ok bool) {
	if n < least || n > kitexMillisecondsMax {
		if own {
			t.problem(category, method, field, "out of range (%d to %d, got %d)", least, kitexMillisecondsMax, n)
		}
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}

// timeout returns the time of a call, which is negative for none: that is what 0 means in
// Kitex.
func (t *translation) timeout(name string, setting timeoutSetting, own bool) (timeout time.Duration, ok bool) {
	if own && setting.ConnectMilliseconds != 0 {
		t.problem(kitexTimeout, name, "conn_timeout_ms", "it is not part of a policy: set ClientConfig.ConnectTimeout (got %d)", setting.ConnectMilliseconds)
	}
	timeout, ok = t.milliseconds(kitexTimeout, name, "rpc_timeout_ms", setting.RPCMilliseconds, 0, own)
	if ok && timeout == 0 {
		timeout = -1
	}
	return timeout, ok
}

// breaker translates a breaker. In Kitex one without min_sample may open with the first
// failure.
func (t *translation) breaker(name string, setting breakerSetting, own bool) (breaker policy.Breaker, ok bool) {
	if !setting.Enable {
		return policy.Breaker{FailurePercent: -1}, true
	}
	percent, ok := percentOf(setting.ErrorRate)
	if !ok || setting.MinSamples < 0 || setting.MinSamples > limits.PolicyCountMax {
		if own {
			t.problem(kitexBreaker, name, "err_rate, min_sample", "out of range (above 0 to 1, got %g; 0 to %d, got %d)", setting.ErrorRate, limits.PolicyCountMax, setting.MinSamples)
		}
		return policy.Breaker{}, false
	}
	return policy.Breaker{FailurePercent: percent, MinCalls: max(1, int(setting.MinSamples))}, true
}

// percentOf turns a rate into a percentage, of 1 at least.
func percentOf(rate float64) (percent int, ok bool) {
	if !(rate > 0 && rate <= 1) {
		return 0, false
	}
	return max(1, int(math.Round(rate*100))), true
}

// kitexRetries is what a policy for retries becomes.
type kitexRetries struct {
	retry policy.Retry
	hedge policy.Hedge
	// longest is how long after the begin of a call another attempt may begin; 0 is any time.
	longest time.Duration
	// field is the policy that is in force of the three.
	field string
}

// retry translates the policy of a method.
func (t *translation) retry(name string, setting retrySetting, own bool) (made kitexRetries, ok bool) {
	if !setting.Enable {
		return kitexRetries{retry: policy.Retry{Attempts: -1}, hedge: policy.Hedge{After: -1}}, true
	}
	field, p, most := "failure_policy", setting.Failure, int64(kitexFailureRetriesMax)
	switch setting.Type {
	case kitexFailureRetry:
	case kitexBackupRetry:
		field, p, most = "backup_policy", setting.Backup, kitexBackupRetriesMax
	case kitexMixedRetry:
		field, p = "mixed_policy", setting.Mixed
	default:
		if own {
			t.problem(kitexRetry, name, "type", "unknown (0 to 2, got %d)", setting.Type)
		}
		return kitexRetries{}, false
	}
	if p == nil {
		if own {
			t.problem(kitexRetry, name, field, "it is missing")
		}
		return kitexRetries{}, false
	}
	if p.Stop.Retries < 0 || p.Stop.Retries > most {
		if own {
			t.problem(kitexRetry, name, field+".stop_policy.max_retry_times", "out of range (0 to %d, got %d)", most, p.Stop.Retries)
		}
		return kitexRetries{}, false
	}
	// Kitex retries what has timed out, so whoever configured that knows that the method
	// may run twice, and backup requests say the same.
	made = kitexRetries{field: field, retry: policy.Retry{
		Attempts: int(p.Stop.Retries) + 1, Idempotent: true, Codes: policy.CodesOf(observe.Code(fulmar.DeadlineExceeded)),
		SameInstance: p.SameNode, IgnoreChain: p.Stop.DisableChainStop, BackoffMin: -1, BackoffMax: -1,
	}}
	if setting.Type != kitexFailureRetry {
		if made.hedge.After, ok = t.milliseconds(kitexRetry, name, field+".retry_delay_ms", p.DelayMilliseconds, 1, own); !ok {
			return kitexRetries{}, false
		}
		made.hedge.Attempts = made.retry.Attempts
	}
	if setting.Type != kitexBackupRetry {
		t.backoff(&made.retry, name, field, p, own)
	}
	if own {
		t.extras(name, field, p)
	}
	made.longest, _ = t.milliseconds(kitexRetry, name, field+".stop_policy.max_duration_ms", p.Stop.DurationMilliseconds, 0, own)
	return made, true
}

// stretch makes the time of a call of that of an attempt, which is what Kitex has. Kitex
// begins no attempt after longest, if that is set, but lets one that has begun take all of
// its time.
func (t *translation) stretch(method *policy.Method, name string, retries kitexRetries, own bool) {
	attempt := method.Timeout
	if attempt <= 0 || method.Retry.Attempts < 0 {
		return
	}
	method.Retry.AttemptTimeout = attempt
	more := time.Duration(method.Retry.Attempts - 1)
	pause := max(method.Retry.BackoffMax, 0)
	method.Timeout = attempt + more*(attempt+pause)
	if method.Hedge.After > 0 {
		method.Timeout = attempt + more*(min(attempt, method.Hedge.After)+pause)
	}
	if retries.longest > 0 {
		method.Timeout = min(method.Timeout, retries.longest+attempt)
	}
	if method.Timeout > limits.PolicyDurationMax {
		if own {
			t.problem(kitexRetry, name, retries.field, "all attempts together may take %v, which is more than a policy may say: they get %v", method.Timeout, limits.PolicyDurationMax)
		}
		method.Timeout = limits.PolicyDurationMax
	}
}

// extras are fields without an equivalent in the policy of a method.
func (t *translation) extras(name, field string, p *failureSetting) {
	if text := strings.TrimSpace(string(p.Extra)); text != "" && text != "null" && text != `""` {
		t.problem(kitexRetry, name, field+".extra", "there is no equivalent of it")
	}
	if p.Stop.Breaker == nil || p.Stop.Breaker.ErrorRate == 0 {
		return
	}
	const rate = ".stop_policy.cb_policy.error_rate"
	percent, ok := percentOf(p.Stop.Breaker.ErrorRate)
	switch {
	case !ok:
		t.problem(kitexRetry, name, field+rate, "out of range (above 0 to 1, got %g)", p.Stop.Breaker.ErrorRate)
	case name != everyMethod:
		t.problem(kitexRetry, name, field+rate, "retries have one budget for all methods: set it for %q", everyMethod)
	default:
		t.document.Client.RetryBudget.Percent = percent
	}
}

// backoff translates pauses; r has none so far. Ours are drawn between 0 and a bound, so a
// fixed or random pause becomes the bound.
func (t *translation) backoff(r *policy.Retry, name, field string, p *failureSetting, own bool) {
	if p.Backoff == nil {
		return
	}
	item := ""
	switch p.Backoff.Type {
	case "", "none":
		return
	case "fixed":
		item = "fix_ms"
	case "random":
		item = "max_ms"
	default:
		if own {
			t.problem(kitexRetry, name, field+".backoff_policy.backoff_type", "unknown (got %.80q)", p.Backoff.Type)
		}
		return
	}
	n := p.Backoff.Items[item]
	if !(n >= 0 && n <= kitexMillisecondsMax) {
		n = -1
	}
	pause, ok := t.milliseconds(kitexRetry, name, field+".backoff_policy.cfg_items."+item, int64(n), 0, own)
	if ok && pause > 0 {
		r.BackoffMin, r.BackoffMax = pause, pause
	}
}
