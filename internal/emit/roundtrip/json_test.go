package roundtrip_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/enumtext/golden/enumtext"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestJSON_KeepsEverything(t *testing.T) {
	for _, prototype := range declared {
		t.Run(reflect.TypeOf(prototype).Elem().String(), func(t *testing.T) {
			for seed := range uint64(20) {
				sent := newKnown(prototype, seed)
				text, err := json.Marshal(sent)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				received := reflect.New(reflect.TypeOf(prototype).Elem()).Interface()
				if err := json.Unmarshal(text, received); err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, text)
				}
				if !reflect.DeepEqual(sent, received) {
					t.Fatalf("seed %d:\n%s\nsent     %v\nreceived %v", seed, text, sent, received)
				}
			}
		})
	}
}

// checkJSON fails the test unless a value has a text, and the text that value.
func checkJSON[T any](t *testing.T, value T, want string) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	var received T
	if err := json.Unmarshal([]byte(want), &received); err != nil || !reflect.DeepEqual(value, received) {
		t.Errorf("%s: %v, %v", want, received, err)
	}
}

func TestJSON_Forms(t *testing.T) {
	checkJSON(t, &shapes.Optional{}, `{}`)
	checkJSON(t, &shapes.Optional{
		ABool: thrift.Some(false), AnI64: thrift.Some[int64](math.MaxInt64), ADouble: thrift.Some(0.5), AString: thrift.Some("<"), ABinary: []byte("\xff"),
		AUUID: thrift.Some(thrift.UUID{1}), AnEnum: thrift.Some(shapes.Color_BLUE), AStruct: &shapes.Point{}, AList: []int32{},
	}, `{"aBool":false,"anI64":9223372036854775807,"aDouble":0.5,"aString":"\u003c","aBinary":"/w==","aUuid":"01000000-0000-0000-0000-000000000000","anEnum":2,"aStruct":{"x":0,"y":0},"aList":[]}`)
	checkJSON(t, &shapes.Keys{
		Bools: map[bool]string{true: "t", false: "f"}, Bytes: map[int8]int8{-1: 1}, Doubles: map[float64]string{-0.5: "d", 1e300: "e"},
		Blobs: map[string]string{"\xff": "b", "": ""}, UUIDs: map[thrift.UUID]thrift.UUID{}, Colors: map[shapes.Color]shapes.Color{77: 2},
		Painting: shapes.Painting{{X: 2}: 1, {X: 1, Label: thrift.Some("p")}: 2},
		Lists:    []thrift.Pair[[]int32, string]{{Key: []int32{1}, Value: "one"}},
		Nested:   map[int64]map[shapes.Point][]shapes.Point{5: {{Y: 1}: {{X: 3}}}, 6: nil},
		Must:     map[string][][]byte{"\xfe": {{}, []byte("x")}},
	}, `{"bools":{"false":"f","true":"t"},"bytes":{"-1":1},"doubles":{"-0.5":"d","1e+300":"e"},"blobs":{"":"","/w==":"b"},"uuids":{},"colors":{"77":2},`+
		`"painting":[{"key":{"x":1,"y":0,"label":"p"},"value":2},{"key":{"x":2,"y":0},"value":1}],`+
		`"lists":[{"key":[1],"value":"one"}],"sets":null,"maps":null,"structs":null,`+
		`"nested":{"5":[{"key":{"x":0,"y":1},"value":[{"x":3,"y":0}]}],"6":null},"must":{"/g==":["","eA=="]}}`)
}

func TestJSON_NamesWhatItCannotSay(t *testing.T) {
	for name, value := range map[string]any{
		"field": &shapes.Plain{ADouble: math.NaN()}, "optional": &shapes.Optional{ADouble: thrift.Some(math.Inf(1))},
		"list": &shapes.Containers{Doubles: []float64{math.Inf(-1)}}, "key": &shapes.Keys{Doubles: map[float64]string{math.NaN(): ""}},
	} {
		_, err := json.Marshal(value)
		if err == nil || !strings.Contains(err.Error(), "NaN") && !strings.Contains(err.Error(), "Inf") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]string{
		`{"bools":{"yes":""}}`:   `field Bools of shapes.Keys: key "yes" is not true or false`,
		`{"doubles":{"NaN":""}}`: `key "NaN" is not a number`,
		`{"doubles":{"":""}}`:    `key "" is not a number`,
		`{"blobs":{"*":""}}`:     `key "*" is not base64`,
		`{"painting":{"a":1}}`:   "field Painting of shapes.Keys: json: ",
		`{"nested":{"x":[]}}`:    "number x",
		`{"bytes":{"300":1}}`:    "number 300",
		`{"uuids":{"a":"01234567-89ab-cdef-0123-456789abcdef"}}`: "has 1 characters",
		`{"bools":{"true":5},"bytes":null}`:                      "field Bools of shapes.Keys: json: cannot unmarshal number",
	} {
		err := json.Unmarshal([]byte(text), new(shapes.Keys))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestJSON_KeepsFieldsThatAreAbsent(t *testing.T) {
	keys := &shapes.Keys{Bools: map[bool]string{true: "a"}, Bytes: map[int8]int8{1: 1}, Colors: map[shapes.Color]shapes.Color{1: 1}, Doubles: map[float64]string{1: "b"}}
	if err := json.Unmarshal([]byte(`{"bytes":null,"doubles":null,"blobs":{"AA==":"x"}}`), keys); err != nil {
		t.Fatal(err)
	}
	want := &shapes.Keys{Bools: map[bool]string{true: "a"}, Colors: map[shapes.Color]shapes.Color{1: 1}, Blobs: map[string]string{"\x00": "x"}}
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("%v, want %v", keys, want)
	}
}

// TestJSON_ReplacesDefaults reads into new structs with defaults.
func TestJSON_ReplacesDefaults(t *testing.T) {
	for text, change := range map[string]func(*values.Replaced){
		`{}`: func(*values.Replaced) {},
		`{"choice":{"text":"x"},"counts":{"k":2},"choices":[{"text":"y"},{}]}`: func(want *values.Replaced) {
			want.Choice, want.Counts = values.Choice{Text: thrift.Some("x")}, map[string]int32{"k": 2}
			want.Choices = []values.Choice{{Text: thrift.Some("y")}, {}}
		},
		`{"choice":null,"counts":null,"choices":[],"within":null,"points":{}}`: func(want *values.Replaced) {
			want.Counts, want.Choices, want.Points = nil, []values.Choice{}, map[string][]values.Point{}
		},
		`{"choice":{},"Within":{"counts":{"k":2},"right":3},"points":{"a":[{"y":1}]}}`: func(want *values.Replaced) {
			want.Choice, want.Points = values.Choice{}, map[string][]values.Point{"a": {{Y: 1}}}
			want.Within.Counts, want.Within.Right = map[string]int32{"k": 2}, 3
		},
		`{"within":{"left":1}}`: func(want *values.Replaced) { want.Within.Left = 1 },
	} {
		read, want := values.NewReplaced(), values.NewReplaced()
		change(want)
		if err := json.Unmarshal([]byte(text), read); err != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("%s: %v\ngot  %v\nwant %v", text, err, read, want)
		}
	}
	kept := values.Choice{Number: thrift.Some[int32](4)}
	for text, want := range map[string]string{`{"number":"x"}`: "number", `[]`: "array", strings.Repeat(`{"point":`, 300) + "1": "unexpected end"} {
		if err := json.Unmarshal([]byte(text), &kept); err == nil || !strings.Contains(err.Error(), want) || kept.Number != thrift.Some[int32](4) {
			t.Errorf("%.40s: %v, %v", text, err, kept)
		}
	}
	if err := json.Unmarshal([]byte(`{"within":{"counts":{"k":"x"}}}`), values.NewReplaced()); err == nil || !strings.Contains(err.Error(), "field Within of values.Replaced: thrift: field Counts of values.Within: json: ") {
		t.Error(err)
	}
}

func TestJSON_EnumsAsText(t *testing.T) {
	checkJSON(t, enumtext.Paint{
		Color: enumtext.Color_RED, Under: thrift.Some(enumtext.Color(-77)), Layers: []enumtext.Color{enumtext.Color_GREEN, 0},
		Names: map[enumtext.Color]enumtext.Nothing{enumtext.Color_RED: 3, 99: 4}, Flags: map[bool]enumtext.Color{true: 2},
	}, `{"color":"RED","under":"-77","layers":["GREEN","0"],"names":{"99":"4","RED":"3"},"flags":{"true":"GREEN"}}`)
	for text, want := range map[string]enumtext.Color{`"CRIMSON"`: 1, `"2"`: 2, `2`: 2, `-5`: -5, `null`: 9} {
		color := enumtext.Color(9)
		if err := json.Unmarshal([]byte(text), &color); err != nil || color != want {
			t.Errorf("%s is %d, %v", text, color, err)
		}
	}
	for _, text := range []string{`"red"`, `""`, `"2147483648"`, `2147483648`, `1.5`, `true`, `[]`} {
		color := enumtext.Color(9)
		if err := json.Unmarshal([]byte(text), &color); err == nil || color != 9 {
			t.Errorf("%s is %d, %v", text, color, err)
		}
	}
	checkJSON(t, map[orders.Status]orders.Status{orders.Status_PAID: 77}, `{"2":77}`)
}

// FuzzUnmarshalJSON reads any text as a struct with all kinds of keys, as one with enums as
// text, and into new ones with defaults. What was read is written and read again alike.
func FuzzUnmarshalJSON(f *testing.F) {
	for seed := range uint64(5) {
		for _, prototype := range []thrift.Struct{shapes.NewKeys(), enumtext.NewPaint(), values.NewSettings(), values.NewReplaced()} {
			text, err := json.Marshal(newFilled(prototype, seed))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(`{"choice":{"text":"x"},"counts":{"k":2},"choices":[{"text":"y"},{}],"within":{"counts":{"k":2}},"points":{"a":[null]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, fresh := range []func() sized{
			func() sized { return new(shapes.Keys) }, func() sized { return new(enumtext.Paint) },
			func() sized { return values.NewSettings() }, func() sized { return values.NewReplaced() },
		} {
			first, second := fresh(), fresh()
			if json.Unmarshal(text, first) != nil {
				continue
			}
			for _, union := range unionsOf(first) {
				if set := fieldsSet(union); set > 1 {
					t.Fatalf("%v has %d fields", union, set)
				}
			}
			again, err := json.Marshal(first)
			if err != nil {
				t.Fatalf("%v: %v", first, err)
			}
			if err := json.Unmarshal(again, second); err != nil || !equal(first, second) {
				t.Fatalf("%s: %v\nfirst  %v\nsecond %v", again, err, first, second)
			}
		}
	})
}

// unionsOf returns the unions in a struct of package values.
func unionsOf(s sized) []values.Choice {
	switch s := s.(type) {
	case *values.Settings:
		return []values.Choice{s.Choice}
	case *values.Replaced:
		return append([]values.Choice{s.Choice}, s.Choices...)
	default:
		return nil
	}
}

func fieldsSet(union values.Choice) (set int) {
	for _, is := range []bool{union.Number.IsSet(), union.Text.IsSet(), union.Point != nil} {
		if is {
			set++
		}
	}
	return set
}
