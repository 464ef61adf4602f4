package roundtrip_test

import (
	"encoding/json"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
)

// TestView_UnmarshalsJSON: what the view was does not matter, and stays after an error.
func TestView_UnmarshalsJSON(t *testing.T) {
	want := &views.Preset{}
	*want = *views.NewPreset()
	want.AnI32, want.Tags = 5, []string{"a"}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var v views.PresetView
	v.SetAnI8(77) // does not matter
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Struct(); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := json.Unmarshal([]byte("null"), &v); err != nil || v.AnI32() != 5 {
		t.Errorf("null: %v, %v", v, err)
	}
	for _, wrong := range []string{`{"anI32":"x"}`, `[]`, `{`} {
		if err := json.Unmarshal([]byte(wrong), &v); err == nil || v.AnI32() != 5 {
			t.Errorf("%s: %v, %v", wrong, v, err)
		}
	}
	var c views.ChoiceView
	if err := json.Unmarshal([]byte("{}"), &c); err == nil {
		t.Error("a union without a field")
	}
}
