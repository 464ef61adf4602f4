package etcd

import (
	"encoding/json"
	"testing"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/cluster/registries"
	"github.com/fulmar-rpc/fulmar/policy"
)

// FuzzParseValue: any bytes as the value of an instance. What is accepted can be announced,
// and is read again alike.
func FuzzParseValue(f *testing.F) {
	for _, seed := range []string{
		`{"network":"tcp","address":"10.0.0.1:8888","weight":10,"tags":null}`,
		`{"network":"unix","address":"/run/x","weight":0,"tags":{"zone":"west"}}`,
		`{"address":"@:1"}`, `null`, `[]`, `{"weight":1e99}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		instance, err := parseValue(value, "zone")
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if err := registries.CheckInstance(instance); err != nil {
			t.Fatalf("%+v was read, and cannot be announced: %v", instance, err)
		}
		written, _, err := formatValue(instance, "zone")
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseValue(written, "zone")
		if instance.Weight == 0 {
			instance.Weight = 10 // as it was written
		}
		if err != nil || !sameAfterJSON(again, instance) {
			t.Fatalf("%+v became %+v, %v", instance, again, err)
		}
	})
}

// sameAfterJSON compares instances whose tags may have had bytes that are no text.
func sameAfterJSON(a, b cluster.Instance) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// FuzzParseKitex: any bytes as the value of a category of Kitex's settings. What is read
// becomes a policy that makes sense, and problems that name what they are about.
func FuzzParseKitex(f *testing.F) {
	for category, seed := range map[string]string{
		kitexTimeout: `{"*":{"rpc_timeout_ms":300,"conn_timeout_ms":1}}`,
		kitexRetry:   `{"*":{"enable":true,"type":2,"mixed_policy":{"retry_delay_ms":30,"stop_policy":{"max_retry_times":1,"cb_policy":{"error_rate":0.1}},"backoff_policy":{"backoff_type":"random","cfg_items":{"max_ms":1e300}}}}}`,
		kitexBreaker: `{"place":{"enable":true,"err_rate":0.3,"min_sample":50}}`,
		kitexLimit:   `{"connection_limit":1,"qps_limit":-1}`,
		"other":      `x`,
	} {
		f.Add(category, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, category string, text []byte) {
		value, err := parseKitex(category, text)
		if err != nil {
			return
		}
		s := kitexSettings{services: []string{"Orders"}}
		document, problems := s.update("/KitexConfig/a/b/", map[string]*kitexValue{category: &value})
		text, err = json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.ParseJSON(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, problem := range problems {
			if problem.Key == "" || problem.Field == "" || problem.Reason == "" {
				t.Fatalf("%+v", problem)
			}
		}
	})
}
