package roundtrip_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested/common"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestNested_HasWhatItEmbeds uses fields of embedded structs as those of the outer one,
// and what the outer one has too under its own name.
func TestNested_HasWhatItEmbeds(t *testing.T) {
	r := nested.NewRequest()
	r.Caller, r.X, r.Height = "me", 4, 5
	if r.Base.Caller != "me" || r.Point.X != 4 || r.Size.Height != 5 || r.Width != 3 || r.Keyed != nil {
		t.Errorf("%v", r)
	}
	r.Keyed = &common.Keyed{Counts: map[bool]int32{true: 1}}
	if r.Counts[true] != 1 {
		t.Errorf("%v", r)
	}
	if got, want := r.String(), `nested.Request(base: (caller: "me"), id: 0, size: (width: 3, height: 5, depths: [1, 2]), keyed: (counts: {true: 1}), place: (x: 4, y: 0))`; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	// A method of the struct, and none of what is in it.
	c := r.Clone()
	if c.Depths[0] = 9; r.Depths[0] != 1 || c.Equal(r) || !r.Equal(r.Clone()) {
		t.Errorf("%v, %v", c, r)
	}
	if got := len(marshal(t, r)); got != r.SizeThrift() || got <= r.Base.SizeThrift() {
		t.Errorf("%d bytes, said %d", got, r.SizeThrift())
	}
	file, name := r.DescribeThrift()
	if name != "Request" || file != &nested.NestedDescriptor {
		t.Errorf("described as %s", name)
	}
	failed := &nested.Failed{Cause: nested.Cause{Text: "cause"}, Code: 7}
	if got, want := failed.Error(), `nested.Failed(cause: (text: "cause"), code: 7)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, isCause := errors.AsType[*nested.Cause](failed); isCause {
		t.Error("an error that embeds another one is that")
	}
}

// TestNested_IsTheSameOnTheWire compares with what the fields say one by one.
func TestNested_IsTheSameOnTheWire(t *testing.T) {
	got := marshal(t, &nested.Wrapped{Point: nested.Point{X: 1, Y: 2}})
	want := wire("\x0c\x00\x01" + string(wire(i32Field(1, 1), i32Field(2, 2))))
	if string(got) != string(want) {
		t.Errorf("%x, want %x", got, want)
	}
	err := thrift.Unmarshal(wire(), nested.NewRequest())
	wantError(t, err, "required but absent: place")
	err = thrift.Unmarshal(wire(i32Field(1, 1)), &nested.Wrapped{Point: nested.Point{X: 8}})
	if err != nil {
		t.Errorf("a field of what is embedded, which is none of the struct: %v", err)
	}
	_, err = thrift.Marshal(&nested.Either{Point: &nested.Point{}, Wrapped: &nested.Wrapped{}})
	wantError(t, err, "exactly one field must be set, 2 are")
}

// TestNested_IsAFieldInJSON has structs inside that have methods for JSON, which must not
// become those of the outer ones.
func TestNested_IsAFieldInJSON(t *testing.T) {
	checkJSON(t, &nested.Wrapped{Point: nested.Point{X: 1}}, `{"point":{"x":1,"y":0}}`)
	checkJSON(t, &nested.Request{Base: common.Base{Caller: "me"}, ID: 2, Keyed: &common.Keyed{Counts: map[bool]int32{true: 1}, Names: map[string]string{"\xff": "n"}}},
		`{"base":{"caller":"me"},"id":2,"size":{"width":0,"height":0,"depths":null},"keyed":{"counts":{"true":1},"names":{"/w==":"n"}},"place":{"x":0,"y":0}}`)
	checkJSON(t, &nested.Aliased{Origin: common.Origin{Caller: "me"}}, `{"from":{"caller":"me"}}`)
	checkJSON(t, &nested.Chain{Chain: &nested.Chain{Depth: 1}}, `{"chain":{"depth":1},"depth":0}`)
	checkJSON(t, &nested.Left{Right: &nested.Right{Title: "t"}, Name: "n"}, `{"right":{"left":{"name":""},"title":"t"},"name":"n"}`)
	checkJSON(t, &nested.Either{Point: &nested.Point{X: 1}}, `{"point":{"x":1,"y":0}}`)
	checkJSON(t, &nested.Holder{Either: nested.Either{Number: thrift.Some[int32](1)}}, `{"either":{"number":1},"requests":null,"aliased":null}`)
	// What is not in the text stays, and a list is replaced, in what is embedded too.
	r := nested.NewRequest()
	r.Caller = "me"
	if err := json.Unmarshal([]byte(`{"size":{"depths":[7]},"caller":"nobody"}`), r); err != nil || r.Caller != "me" || r.Width != 3 || len(r.Depths) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	around := nested.Chain{}
	around.Chain = &around
	if _, err := json.Marshal(&around); err == nil {
		t.Error("a value that contains itself has JSON")
	}
}

func TestNested_InViews(t *testing.T) {
	seen := &nested.Seen{Point: nested.Point{X: 1}, Base: &common.Base{Caller: "me"}}
	v, err := nested.NewSeenView(seen)
	if err != nil {
		t.Fatal(err)
	}
	point, base := v.Point(), v.Base()
	if point.X() != 1 || base.Caller() != "me" || v.String() != seen.String() {
		t.Errorf("%s, want %s", v.String(), seen)
	}
	text, err := json.Marshal(&v)
	want, _ := json.Marshal(seen)
	if err != nil || string(text) != string(want) {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	v.EditPoint(func(value *nested.PointView) { value.SetX(2) })
	v.ClearBase()
	if got, err := v.Struct(); err != nil || !got.Equal(&nested.Seen{Point: nested.Point{X: 2}}) {
		t.Errorf("%v, %v", got, err)
	}
}
