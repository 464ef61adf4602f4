package methods_test

import (
	"encoding/json"
	"maps"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift/methods"
)

// TestJSON_LeavesOutWhatIsNotExported has a field as plugins of the generator add them.
func TestJSON_LeavesOutWhatIsNotExported(t *testing.T) {
	type own struct {
		trace string
		Flags map[bool]string `json:"flags"`
		mutex *sync.Mutex
		Last  int32 `json:"last"`
	}
	value := own{trace: "kept", Flags: map[bool]string{true: "t"}, mutex: new(sync.Mutex), Last: 7}
	text, err := methods.MarshalJSON(value)
	if err != nil || string(text) != `{"flags":{"true":"t"},"last":7}` {
		t.Errorf("%s, %v", text, err)
	}
	if err := methods.UnmarshalJSON([]byte(`{"flags":{"false":"f"},"last":8,"trace":"x"}`), &value); err != nil {
		t.Fatal(err)
	}
	if value.trace != "kept" || value.mutex == nil || value.Last != 8 || !maps.Equal(value.Flags, map[bool]string{false: "f"}) {
		t.Errorf("%+v", &value)
	}
}

// TestUnmarshalUnionJSON_ReplacesOnSuccess wants one field to be set, whatever was.
func TestUnmarshalUnionJSON_ReplacesOnSuccess(t *testing.T) {
	type union struct {
		Number *int32  `json:"number,omitempty"`
		Text   *string `json:"text,omitempty"`
	}
	var u union
	for text, want := range map[string]string{`{"number":1}`: `{"number":1}`, `{"text":"x"}`: `{"text":"x"}`, `{}`: `{}`} {
		if err := methods.UnmarshalUnionJSON([]byte(text), &u); err != nil {
			t.Fatal(err)
		}
		for _, kept := range []string{`null`, `{"number":"x"}`, `7`} {
			if err := methods.UnmarshalUnionJSON([]byte(kept), &u); (err == nil) != (kept == "null") {
				t.Errorf("%s: %v", kept, err)
			}
		}
		if got, err := json.Marshal(u); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
