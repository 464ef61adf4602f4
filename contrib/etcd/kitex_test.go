package etcd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/observe"
	"github.com/fulmar-rpc/fulmar/policy"
)

// translated is what becomes of settings, by their categories.
func translated(t *testing.T, services []string, settings map[string]string) (policy.Document, []string) {
	t.Helper()
	values := map[string]*kitexValue{}
	for category, text := range settings {
		value, err := parseKitex(category, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		values[category] = &value
	}
	s := kitexSettings{services: services}
	document, problems := s.update("/KitexConfig/shop/orders/", values)
	var texts []string
	for _, problem := range problems {
		texts = append(texts, strings.TrimPrefix(problem.Key, "/KitexConfig/shop/orders/")+" "+problem.Field)
	}
	return document, texts
}

// retryCase is a policy for retries, with a timeout, and what becomes of it.
type retryCase struct {
	retry, timeout string
	want           policy.Method
	problems       []string
}

// retryCases are policies as Kitex has them.
func retryCases() map[string]retryCase {
	deadline := policy.CodesOf(observe.Code(fulmar.DeadlineExceeded))
	const ms = time.Millisecond
	return map[string]retryCase{
		"off": {
			retry: `{"*":{"enable":false,"type":0,"failure_policy":{}}}`,
			want:  policy.Method{Retry: policy.Retry{Attempts: -1}, Hedge: policy.Hedge{After: -1}},
		},
		"failure": {
			retry:   `{"*":{"enable":true,"type":0,"failure_policy":{"stop_policy":{"max_retry_times":3,"max_duration_ms":0,"disable_chain_stop":true,"ddl_stop":true,"cb_policy":{"error_rate":0.2}},"backoff_policy":{"backoff_type":"fixed","cfg_items":{"fix_ms":50}},"retry_same_node":true,"extra":""}}}`,
			timeout: `{"*":{"rpc_timeout_ms":100}}`,
			want: policy.Method{
				Timeout: 550 * ms,
				Retry: policy.Retry{
					Attempts: 4, Idempotent: true, Codes: deadline, AttemptTimeout: 100 * ms,
					BackoffMin: 50 * ms, BackoffMax: 50 * ms, SameInstance: true, IgnoreChain: true,
				},
			},
		},
		"not for ever": {
			retry:   `{"*":{"enable":true,"type":0,"failure_policy":{"stop_policy":{"max_retry_times":3,"max_duration_ms":150},"backoff_policy":{"backoff_type":"none"}}}}`,
			timeout: `{"*":{"rpc_timeout_ms":100}}`,
			want: policy.Method{
				Timeout: 250 * ms,
				Retry:   policy.Retry{Attempts: 4, Idempotent: true, Codes: deadline, AttemptTimeout: 100 * ms, BackoffMin: -1, BackoffMax: -1},
			},
		},
		"backup": {
			retry:   `{"*":{"enable":true,"type":1,"backup_policy":{"retry_delay_ms":30,"stop_policy":{"max_retry_times":2}}}}`,
			timeout: `{"*":{"rpc_timeout_ms":100}}`,
			want: policy.Method{
				Timeout: 160 * ms,
				Retry:   policy.Retry{Attempts: 3, Idempotent: true, Codes: deadline, AttemptTimeout: 100 * ms, BackoffMin: -1, BackoffMax: -1},
				Hedge:   policy.Hedge{After: 30 * ms, Attempts: 3},
			},
		},
		"mixed": {
			retry: `{"*":{"enable":true,"type":2,"mixed_policy":{"retry_delay_ms":30,"stop_policy":{"max_retry_times":1},"backoff_policy":{"backoff_type":"random","cfg_items":{"min_ms":10,"max_ms":20}}}}}`,
			want: policy.Method{
				Retry: policy.Retry{Attempts: 2, Idempotent: true, Codes: deadline, BackoffMin: 20 * ms, BackoffMax: 20 * ms},
				Hedge: policy.Hedge{After: 30 * ms, Attempts: 2},
			},
		},
		"nonsense": {
			retry:    `{"*":{"enable":true,"type":7}}`,
			problems: []string{"retry *.type"},
		},
		"too often": {
			retry:    `{"*":{"enable":true,"failure_policy":{"stop_policy":{"max_retry_times":6}}}}`,
			problems: []string{"retry *.failure_policy.stop_policy.max_retry_times"},
		},
		"missing": {
			retry:    `{"*":{"enable":true,"type":1,"failure_policy":{}}}`,
			problems: []string{"retry *.backup_policy"},
		},
		"unknown parts": {
			retry:    `{"*":{"enable":true,"failure_policy":{"stop_policy":{"max_retry_times":1,"max_duration_ms":-1,"cb_policy":{"error_rate":7}},"extra":"{}","backoff_policy":{"backoff_type":"square"}}}}`,
			want:     policy.Method{Retry: policy.Retry{Attempts: 2, Idempotent: true, Codes: deadline, BackoffMin: -1, BackoffMax: -1}},
			problems: []string{"retry *.failure_policy.backoff_policy.backoff_type", "retry *.failure_policy.extra", "retry *.failure_policy.stop_policy.cb_policy.error_rate", "retry *.failure_policy.stop_policy.max_duration_ms"},
		},
	}
}

func TestKitex_Retry(t *testing.T) {
	for name, c := range retryCases() {
		t.Run(name, func(t *testing.T) {
			settings := map[string]string{kitexRetry: c.retry}
			if c.timeout != "" {
				settings[kitexTimeout] = c.timeout
			}
			document, problems := translated(t, nil, settings)
			if document.Client.Method != c.want {
				t.Errorf("%+v\nwant %+v", document.Client.Method, c.want)
			}
			if !slices.Equal(problems, c.problems) {
				t.Errorf("problems %q, want %q", problems, c.problems)
			}
			if name == "failure" && document.Client.RetryBudget.Percent != 20 {
				t.Errorf("%+v", document.Client.RetryBudget)
			}
		})
	}
}

func TestKitex_Methods(t *testing.T) {
	settings := map[string]string{
		kitexTimeout: `{"*":{"rpc_timeout_ms":300},"place":{"rpc_timeout_ms":70}}`,
		kitexRetry:   `{"*":{"enable":true,"failure_policy":{"stop_policy":{"max_retry_times":1}}},"cancel":{"enable":false}}`,
		kitexBreaker: `{"place":{"enable":true,"err_rate":0.005,"min_sample":7},"cancel":{"enable":false},"get":{"enable":true,"err_rate":2}}`,
	}
	document, problems := translated(t, []string{"Orders", "shop.v1.Orders", "Plain/"}, settings)
	if want := []string{"circuit_break get.err_rate, min_sample"}; !slices.Equal(problems, want) {
		t.Errorf("problems %q, want %q", problems, want)
	}
	for _, name := range []string{"Orders.place", "shop.v1.Orders/place", "Plain/place"} {
		// Its own timeout, and the retries of all.
		place := document.Client.For(strings.TrimRight(name[:len(name)-len("place")], "./"), "place")
		if _, ok := document.Client.Methods[name]; !ok || place.Retry.AttemptTimeout != 70*time.Millisecond || place.Timeout != 140*time.Millisecond || place.Retry.Attempts != 2 ||
			place.Breaker.FailurePercent != 1 || place.Breaker.MinCalls != 7 {
			t.Errorf("%s: %+v", name, place)
		}
	}
	if cancel := document.Client.For("Orders", "cancel"); cancel.Timeout != 300*time.Millisecond || cancel.Retry.Attempts != -1 || cancel.Breaker.FailurePercent != -1 {
		t.Errorf("%+v", cancel)
	}
	if _, problems := translated(t, nil, settings); !slices.Equal(problems, []string{"circuit_break cancel.(all)", "circuit_break get.(all)", "circuit_break place.(all)"}) {
		t.Errorf("without services: %q", problems)
	}
}

func TestKitex_Limit(t *testing.T) {
	outside := []string{"limit qps_limit"}
	for text, want := range map[string]struct {
		perSecond, connections int
		problems               []string
	}{
		`{"connection_limit":0,"qps_limit":2000}`: {2000, 0, nil},
		`{}`:                               {0, 0, nil},
		`null`:                             {0, 0, nil},
		`{"qps_limit":-3}`:                 {-1, 0, nil},
		`{"qps_limit":10000000}`:           {10_000_000, 0, nil},
		`{"qps_limit":10000001}`:           {0, 0, outside}, // more than a policy takes
		`{"qps_limit":99999999999}`:        {0, 0, outside},
		`{"connection_limit":100}`:         {0, 100, nil},
		`{"connection_limit":-1}`:          {0, 0, nil},
		`{"connection_limit":10000000}`:    {0, 10_000_000, nil},
		`{"connection_limit":99999999999}`: {0, 0, []string{"limit connection_limit"}},
	} {
		document, problems := translated(t, nil, map[string]string{kitexLimit: text})
		if got := document.Server; got.Limit.PerSecond != want.perSecond || got.Connections != want.connections || !slices.Equal(problems, want.problems) {
			t.Errorf("%s: %+v, problems %q; want %+v", text, got, problems, want)
		}
	}
}
