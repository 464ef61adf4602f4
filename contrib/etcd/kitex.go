package etcd

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar"
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
}

func (t *translation) problem(category, method, field, format string, arguments ...any) {
	path := field
	if method != "" {
		path = fmt.Sprintf("%.80s", method) + "." + field
	}
	t.problems = append(t.problems, Problem{t.prefix + category, path, fmt.Sprintf(format, arguments...)})
}

// all translates the values of all categories. A method has what is set for it in a
// category, else what is set there for all.
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
	methods := map[string]string{} // to a category that it is in
	for name := range timeouts {
		methods[name] = kitexTimeout
	}
	for name := range retries {
		methods[name] = kitexRetry
	}
	for name := range breakers {
		methods[name] = kitexBreaker
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		names := t.names(name)
		if name != everyMethod && len(names) == 0 {
			t.problem(methods[name], name, "(all)", "no services are given that the method may be of")
			continue
		}
		var method policy.Method
		t.timeout(&method, name, timeouts)
		t.retry(&method, name, retries)
		t.breaker(&method, name, breakers)
		if name == everyMethod {
			t.document.Client.Method = method
			continue
		}
		for _, full := range names {
			if t.document.Client.Methods == nil {
				t.document.Client.Methods = map[string]policy.Method{}
			}
			t.document.Client.Methods[full] = method
		}
	}
}

// names returns the names that a method of Kitex's may have.
func (t *translation) names(method string) []string {
	var names []string
	for _, service := range t.services {
		switch {
		case method == everyMethod:
		case strings.HasSuffix(service, "/"):
			names = append(names, service+method)
		case strings.Contains(service, "."):
			names = append(names, service+"/"+method)
		default:
			names = append(names, service+"."+method)
		}
	}
	return names
}

// pick returns the setting of a method, or that of all, and whose it is: problems of that
// of all are noted once, with it.
func pick[T any](settings map[string]T, method string) (setting T, ok, own bool) {
	if setting, ok = settings[method]; ok {
		return setting, true, true
	}
	setting, ok = settings[everyMethod]
	return setting, ok, false
}

func (t *translation) limit(limit *limitSetting) {
	if limit == nil {
		return
	}
	if limit.Connections > 0 {
		t.problem(kitexLimit, "", "connection_limit", "it is not part of a policy: set ServerConfig.MaxConnections (got %d)", limit.Connections)
	}
	switch {
	case limit.PerSecond > math.MaxInt32:
		t.problem(kitexLimit, "", "qps_limit", "out of range (limit %d, got %d)", math.MaxInt32, limit.PerSecond)
	case limit.PerSecond > 0:
		t.document.Server.Limit.PerSecond = int(limit.PerSecond)
	case limit.PerSecond < 0:
		t.document.Server.Limit.PerSecond = -1
	}
}

// milliseconds translates a time, and notes one that makes no sense.
func (t *translation) milliseconds(category, method, field string, n int64, own bool) time.Duration {
	if n < 0 || n > kitexMillisecondsMax {
		if own {
			t.problem(category, method, field, "out of range (0 to %d, got %d)", kitexMillisecondsMax, n)
		}
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func (t *translation) timeout(method *policy.Method, name string, settings map[string]timeoutSetting) {
	setting, ok, own := pick(settings, name)
	if !ok {
		return
	}
	method.Timeout = t.milliseconds(kitexTimeout, name, "rpc_timeout_ms", setting.RPCMilliseconds, own)
	if own && setting.ConnectMilliseconds != 0 {
		t.problem(kitexTimeout, name, "conn_timeout_ms", "it is not part of a policy: set ClientConfig.ConnectTimeout (got %d)", setting.ConnectMilliseconds)
	}
}

func (t *translation) breaker(method *policy.Method, name string, settings map[string]breakerSetting) {
	setting, ok, own := pick(settings, name)
	switch {
	case !ok:
		return
	case !setting.Enable:
		method.Breaker.FailurePercent = -1
		return
	}
	percent, ok := percentOf(setting.ErrorRate)
	if !ok || setting.MinSamples < 0 || setting.MinSamples > math.MaxInt32 {
		if own {
			t.problem(kitexBreaker, name, "err_rate, min_sample", "out of range (above 0 to 1, got %g; 0 to %d, got %d)", setting.ErrorRate, math.MaxInt32, setting.MinSamples)
		}
		return
	}
	method.Breaker.FailurePercent, method.Breaker.MinCalls = percent, int(setting.MinSamples)
}

// percentOf turns a rate into a percentage, of 1 at least.
func percentOf(rate float64) (percent int, ok bool) {
	if !(rate > 0 && rate <= 1) {
		return 0, false
	}
	return max(1, int(math.Round(rate*100))), true
}

// retry translates the policy of a method, whose Timeout is that of one attempt so far,
// as it is in Kitex.
func (t *translation) retry(method *policy.Method, name string, settings map[string]retrySetting) {
	setting, ok, own := pick(settings, name)
	switch {
	case !ok:
		return
	case !setting.Enable:
		method.Retry.Attempts = -1
		method.Hedge.After = -1
		return
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
		return
	}
	if p == nil {
		if own {
			t.problem(kitexRetry, name, field, "it is missing")
		}
		return
	}
	if p.Stop.Retries < 0 || p.Stop.Retries > most {
		if own {
			t.problem(kitexRetry, name, field+".stop_policy.max_retry_times", "out of range (0 to %d, got %d)", most, p.Stop.Retries)
		}
		return
	}
	if own {
		t.extras(name, field, p)
	}
	r := &method.Retry
	r.Attempts = int(p.Stop.Retries) + 1
	// Kitex retries what has timed out, so whoever configured that knows that the method
	// may run twice, and backup requests say the same.
	r.Idempotent = true
	r.Codes = policy.CodesOf(observe.Code(fulmar.DeadlineExceeded))
	r.SameInstance, r.IgnoreChain = p.SameNode, p.Stop.DisableChainStop
	if setting.Type != kitexBackupRetry {
		t.backoff(r, name, field, p, own)
	}
	if setting.Type != kitexFailureRetry {
		method.Hedge.After = t.milliseconds(kitexRetry, name, field+".retry_delay_ms", p.DelayMilliseconds, own)
		method.Hedge.Attempts = r.Attempts
	}
	longest := t.milliseconds(kitexRetry, name, field+".stop_policy.max_duration_ms", p.Stop.DurationMilliseconds, own)
	stretch(method, longest)
}

// stretch makes the time of a call of that of an attempt. Kitex begins no attempt after
// longest, if that is set, but lets one that has begun take all of its time.
func stretch(method *policy.Method, longest time.Duration) {
	attempt := method.Timeout
	if attempt == 0 {
		return
	}
	method.Retry.AttemptTimeout = attempt
	more := time.Duration(method.Retry.Attempts - 1)
	pause := max(method.Retry.BackoffMax, 0)
	method.Timeout = attempt + more*(attempt+pause)
	if method.Hedge.After > 0 {
		method.Timeout = attempt + more*(min(attempt, method.Hedge.After)+pause)
	}
	if longest > 0 {
		method.Timeout = min(method.Timeout, longest+attempt)
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

// backoff translates pauses. Ours are drawn between 0 and a bound, so a fixed or random
// pause becomes the bound.
func (t *translation) backoff(r *policy.Retry, name, field string, p *failureSetting, own bool) {
	r.BackoffMin, r.BackoffMax = -1, -1
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
	pause := t.milliseconds(kitexRetry, name, field+".backoff_policy.cfg_items."+item, int64(n), own)
	if pause > 0 {
		r.BackoffMin, r.BackoffMax = pause, pause
	}
}
