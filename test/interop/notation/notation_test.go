package notation_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	"github.com/fulmar-rpc/fulmar/thrift"
)

type point struct {
	X int32 `json:"x"`
}

type record struct {
	Number   int64                         `json:"number"`
	Ratio    float64                       `json:"ratio"`
	Text     string                        `json:"text"`
	Bytes    []byte                        `json:"bytes"`
	ID       thrift.UUID                   `json:"id"`
	Set      []int32                       `json:"set"`
	Points   map[point][]string            `json:"points"`
	Pairs    []thrift.Pair[[]int32, int32] `json:"pairs"`
	Optional thrift.Opt[string]            `json:"optional,omitzero"`
	Struct   *point                        `json:"struct,omitzero"`
}

const full = `{
	"number": -9223372036854775808, "ratio": {"$double": "NaN"}, "text": {"$repeat": ["ab", 2]}, "bytes": {"$hex": "00 ff"},
	"id": "00112233-4455-6677-8899-aabbccddeeff", "set": {"$set": {"$range": [1, 3, 1]}}, "points": [[{"x": 1}, ["a"]]],
	"pairs": [[[1, 2], 3], [[], 4]], "optional": "$unique", "struct": {"x": 5}
}`

func parse(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return notation.Expand(value, "unlike others")
}

func fill(t *testing.T, types notation.Types, text string) *record {
	t.Helper()
	var target record
	if err := types.Fill(reflect.ValueOf(&target).Elem(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
	return &target
}

func TestFill_SetsEveryForm(t *testing.T) {
	got := fill(t, notation.Types{}, full)
	if got.Text != "abab" || got.Optional.Or("") != "unlike others" || got.Set[2] != 3 || got.Pairs[0].Key[1] != 2 ||
		got.Points[point{1}][0] != "a" || got.ID.String() != "00112233-4455-6677-8899-aabbccddeeff" || got.Struct.X != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestFill_ReportsWhatDoesNotFit(t *testing.T) {
	for _, text := range []string{`{"number": "one"}`, `{"unknown": 1}`, `{"points": [1]}`, `[]`} {
		var target record
		if err := (notation.Types{}).Fill(reflect.ValueOf(&target).Elem(), parse(t, text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestMatch_AcceptsWhatFillMade(t *testing.T) {
	got := fill(t, notation.Types{}, full)
	got.Set[0], got.Set[2] = got.Set[2], got.Set[0]
	got.Pairs[0], got.Pairs[1] = got.Pairs[1], got.Pairs[0]
	if err := (notation.Types{}).Match(parse(t, full), reflect.ValueOf(got)); err != nil {
		t.Error(err)
	}
}

func TestMatch_SeesEveryDifference(t *testing.T) {
	changes := map[string]func(*record){
		"number":         func(r *record) { r.Number++ },
		"ratio":          func(r *record) { r.Ratio = 0 },
		"text":           func(r *record) { r.Text = "" },
		"bytes":          func(r *record) { r.Bytes[0] = 1 },
		"bytes missing":  func(r *record) { r.Bytes = nil },
		"id":             func(r *record) { r.ID[15]++ },
		"set":            func(r *record) { r.Set[0] = 2 },
		"set longer":     func(r *record) { r.Set = append(r.Set, 4) },
		"map value":      func(r *record) { r.Points[point{1}][0] = "b" },
		"map key":        func(r *record) { r.Points = map[point][]string{{2}: {"a"}} },
		"pair":           func(r *record) { r.Pairs[1].Value = 5 },
		"optional":       func(r *record) { r.Optional.Clear() },
		"struct":         func(r *record) { r.Struct.X = 6 },
		"struct missing": func(r *record) { r.Struct = nil },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			got := fill(t, notation.Types{}, full)
			change(got)
			if err := (notation.Types{}).Match(parse(t, full), reflect.ValueOf(got)); err == nil {
				t.Error("no difference seen")
			}
		})
	}
}

func TestMatch_ExpectsAbsentFieldsToBeAbsent(t *testing.T) {
	got := &record{Optional: thrift.Some("")}
	err := notation.Types{}.Match(map[string]any{}, reflect.ValueOf(got))
	if err == nil || !strings.HasPrefix(err.Error(), ".number") && !strings.HasPrefix(err.Error(), ".optional") {
		t.Errorf("got %v", err)
	}
}

// Keys of generated maps may be pointers to structs, which no look-up finds.
func TestMatch_ComparesKeysThatArePointers(t *testing.T) {
	type holder struct {
		Labels map[*point]string `json:"labels"`
	}
	want := parse(t, `{"labels": [[{"x": 1}, "one"], [{"x": 2}, "two"]]}`)
	var got holder
	if err := (notation.Types{}).Fill(reflect.ValueOf(&got).Elem(), want); err != nil {
		t.Fatal(err)
	}
	if err := (notation.Types{}).Match(want, reflect.ValueOf(got)); err != nil {
		t.Error(err)
	}
	for _, other := range []map[*point]string{{{1}: "one"}, {{1}: "one", {3}: "two"}, {{1}: "one", {2}: "three"}} {
		if err := (notation.Types{}).Match(want, reflect.ValueOf(holder{other})); err == nil {
			t.Errorf("%v: no difference seen", other)
		}
	}
}
