package zookeeper

import (
	"encoding/json"
	"testing"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

// FuzzParseValue: any name and bytes as the node of an instance. What is accepted can be
// announced, and is read again alike.
func FuzzParseValue(f *testing.F) {
	for _, seed := range []string{`{"Weight":10,"Tags":null}`, `{"weight":-1,"tags":{"zone":"west"}}`, `null`, `[]`, `{"Weight":1e99}`} {
		f.Add("10.0.0.1:8888", []byte(seed))
		f.Add("[::1]:0", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		instance, err := parseValue(name, data, "zone")
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if err := registries.CheckInstance(instance); err != nil {
			t.Fatalf("%+v was read, and cannot be announced: %v", instance, err)
		}
		if node, err := nodeName(instance); err != nil || node != name {
			t.Fatalf("%q became the node %q, %v", name, node, err)
		}
		written, err := formatValue(instance, "zone")
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseValue(name, written, "zone")
		if instance.Weight == 0 {
			instance.Weight = 10 // as it was written
		}
		got, _ := json.Marshal(again)
		want, _ := json.Marshal(instance)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s became %s, %v", want, got, err)
		}
	})
}
