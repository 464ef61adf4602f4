package roundtrip_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown/newer"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// relayed returns what a peer gets of sent through one that has the definition of
// older, which is decoded in every way that there is.
func relayed[T any, P interface {
	*T
	thrift.Struct
}](t *testing.T, sent P, older sized) []P {
	t.Helper()
	message, err := thrift.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var all []P
	for _, policy := range []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn} {
		for _, owned := range []bool{false, true} {
			between := reflect.New(reflect.TypeOf(older).Elem()).Interface().(sized)
			copied := bytes.Clone(message)
			if owned {
				err = thrift.UnmarshalOwned(copied, between, thrift.UnmarshalConfig{Strings: policy})
				between.Detach()
			} else {
				err = thrift.Unmarshal(copied, between)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range copied {
				copied[i] = '!' // which nobody refers to any more
			}
			again, err := thrift.Marshal(between)
			if err != nil {
				t.Fatal(err)
			}
			if between.SizeThrift() != len(again) {
				t.Errorf("SizeThrift is %d, %d bytes were written", between.SizeThrift(), len(again))
			}
			received := P(new(T))
			if err := thrift.Unmarshal(again, received); err != nil {
				t.Fatal(err)
			}
			all = append(all, received)
		}
	}
	return all
}

// TestUnknown_SurvivesAnOlderDefinition sends messages through somebody who has an
// older definition of them.
func TestUnknown_SurvivesAnOlderDefinition(t *testing.T) {
	for seed := range uint64(100) {
		sent := newFilled(newer.NewMessage(), seed).(*newer.Message)
		for _, received := range relayed(t, sent, unknown.NewMessage()) {
			if !received.Equal(sent) {
				t.Fatalf("seed %d:\nsent     %v\nreceived %v", seed, sent, received)
			}
		}
		refused := newFilled(newer.NewRefused(), seed).(*newer.Refused)
		for _, received := range relayed(t, refused, unknown.NewRefused()) {
			if !received.Equal(refused) {
				t.Fatalf("seed %d:\nsent     %v\nreceived %v", seed, refused, received)
			}
		}
	}
	something := &newer.Nothing{Something: thrift.Some("some")}
	for _, received := range relayed(t, something, unknown.NewNothing()) {
		if !received.Equal(something) {
			t.Errorf("received %v", received)
		}
	}
}

// TestUnknown_OfLongMessages has fields that are linked into the message and not copied.
func TestUnknown_OfLongMessages(t *testing.T) {
	for _, n := range []int{100, 5_000, 20_000, 40_000, 300_000} {
		sent := &newer.Message{ID: 1, Point: newer.Point{Z: thrift.Some[int32](3)}, Path: []newer.Point{}, Choices: map[string]*newer.Choice{},
			Named: map[newer.Point]string{}, Blob: []byte{}, UnknownFields: []int32{},
			Labels: []newer.Label{{Key: "short"}, {Key: strings.Repeat("l", n)}}, Last: thrift.Some(strings.Repeat("n", n))}
		for i, received := range relayed(t, sent, unknown.NewMessage()) {
			if !received.Equal(sent) {
				t.Errorf("%d bytes, way %d: received something else", n, i)
			}
		}
	}
}

func TestUnknown_ArmsOfUnions(t *testing.T) {
	sent := &newer.Choice{Table: map[string][]int64{"a": {1, 2}}}
	for _, received := range relayed(t, sent, unknown.NewChoice()) {
		if !received.Equal(sent) {
			t.Errorf("received %v", received)
		}
	}
	first := func(m *message) { m.FieldI32(1, 5) }
	text := func(m *message) { m.FieldString(2, "text") }
	point := func(m *message) {
		m.Field(thrift.StructType, 4)
		m.Struct(&newer.Point{X: 1})
	}
	other := func(m *message) { m.FieldI32(2, 7) } // text, with a type that it has not
	for name, test := range map[string]struct {
		arms []func(*message)
		want *newer.Choice
	}{
		"the last one is known":        {[]func(*message){first, point, text}, &newer.Choice{Text: thrift.Some("text")}},
		"the last one is not":          {[]func(*message){text, first, point}, &newer.Choice{Point: &newer.Point{X: 1}}},
		"one twice":                    {[]func(*message){point, point}, &newer.Choice{Point: &newer.Point{X: 1}}},
		"one that nobody knows before": {[]func(*message){other, point}, &newer.Choice{Point: &newer.Point{X: 1}}},
	} {
		var older unknown.Choice
		if err := read(t, &older, func(m *message) {
			for _, arm := range test.arms {
				arm(m)
			}
		}); err != nil {
			t.Fatal(err)
		}
		message, err := thrift.Marshal(&older)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var received newer.Choice
		if err := thrift.Unmarshal(message, &received); err != nil || !received.Equal(test.want) {
			t.Errorf("%s: received %v, %v, want %v", name, &received, err, test.want)
		}
	}
	both := &unknown.Choice{Number: thrift.Some[int32](1), UnknownFields: unknownFields(1)}
	_, err := thrift.Marshal(both)
	wantError(t, err, "unknown.Choice", "2 are")
}

// TestUnknown_TypesThatDiffer has fields with ids of the definition and other types:
// those of fields count, those within containers do not.
func TestUnknown_TypesThatDiffer(t *testing.T) {
	var older unknown.Message
	if err := read(t, &older, func(m *message) {
		m.FieldI64(1, 5)
		m.FieldI32(4, 7) // note, a string
		m.Field(thrift.List, 14)
		m.BeginList(thrift.I64, 1) // of i32
		m.I64(9)
		m.EndList()
	}); err != nil {
		t.Fatal(err)
	}
	if got := older.UnknownFields_.SizeThrift(); older.ID != 5 || older.Note.IsSet() || older.UnknownFields != nil || got != 7 {
		t.Errorf("%v with %d unknown bytes", &older, got)
	}
	changed := older.Clone()
	changed.Note.Set("both") // what is known and what was kept have nothing to do with each other
	again := copyOf(t, changed)
	if again.Note.Or("") != "both" || again.UnknownFields_ != older.UnknownFields_ {
		t.Errorf("%v", again)
	}
}

func TestUnknown_IsOneFieldOfAReusedStruct(t *testing.T) {
	var s unknown.Point
	for _, test := range []struct {
		write fields
		want  int
	}{
		{func(m *message) { m.FieldBool(9, true) }, 4},
		{func(m *message) { m.FieldI32(1, 1) }, 4}, // absent: stays, as others do
		{func(m *message) { m.FieldI64(9, 1); m.FieldI32(1, 1); m.FieldI8(10, 1) }, 15},
		{func(m *message) { m.FieldI32(8, 1) }, 7},
	} {
		if err := read(t, &s, test.write); err != nil || s.UnknownFields.SizeThrift() != test.want {
			t.Errorf("%v, %v, want %d bytes", &s, err, test.want)
		}
	}
	s.UnknownFields = thrift.Unknown{}
	if message, err := thrift.Marshal(&s); err != nil || len(message) != 15 {
		t.Errorf("%x, %v", message, err)
	}
}

func TestUnknown_OtherStructsDrop(t *testing.T) {
	var holder unknown.Holder
	if err := read(t, &holder, func(m *message) {
		m.FieldI32(7, 7)
		m.Field(thrift.StructType, 1)
		m.Struct(fields(func(m *message) {
			m.FieldI64(1, 1)
			m.FieldString(99, "kept")
		}))
		m.Field(thrift.StructType, 2)
		m.Struct(fields(func(m *message) {
			m.FieldI64(1, 1)
			m.FieldString(99, "dropped")
		}))
	}); err != nil {
		t.Fatal(err)
	}
	message, err := thrift.Marshal(&holder)
	if err != nil || !bytes.Contains(message, []byte("kept")) || bytes.Contains(message, []byte("dropped")) {
		t.Errorf("%q, %v", message, err)
	}
}

func TestUnknown_InOtherMethods(t *testing.T) {
	a, b := &unknown.Point{X: 1, UnknownFields: unknownFields(1)}, &unknown.Point{X: 1, UnknownFields: unknownFields(2)}
	if a.Equal(b) || !a.Equal(a.Clone()) || a.UnknownFields.IsZero() || !(&unknown.Point{}).UnknownFields.IsZero() {
		t.Error("what is not known does not count")
	}
	if named := map[unknown.Point]string{*a: "a", *b: "b"}; len(named) != 2 || named[*a.Clone()] != "a" {
		t.Errorf("%v", named)
	}
	if got, want := a.String(), `unknown.Point(x: 1, y: 0, UnknownFields: 16 bytes)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (&unknown.Point{}).String(), `unknown.Point(x: 0, y: 0)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	text, err := json.Marshal(a)
	if err != nil || string(text) != `{"x":1,"y":0}` {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"x":2}`), a); err != nil || a.X != 2 || a.UnknownFields != unknownFields(1) {
		t.Errorf("%v, %v", a, err)
	}
	message := &unknown.Message{Named: map[unknown.Point]string{{X: 1}: "a"}, UnknownFields_: unknownFields(3)}
	if text, err = json.Marshal(message); err != nil || strings.Contains(string(text), "nknownFields") {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"id":3}`), message); err != nil || message.ID != 3 || message.UnknownFields_ != unknownFields(3) {
		t.Errorf("%v, %v", message, err)
	}
}

// TestUnknown_IsBounded has what a struct that keeps nothing would refuse as well.
func TestUnknown_IsBounded(t *testing.T) {
	deep := fields(func(m *message) {})
	for range 62 {
		inner := deep
		deep = func(m *message) {
			m.Field(thrift.StructType, 99)
			m.Struct(inner)
		}
	}
	if err := read(t, &unknown.Nothing{}, deep); err != nil {
		t.Error(err)
	}
	tooDeep, err := thrift.Marshal(deep)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		tooDeep = append(append([]byte{12, 0, 99}, tooDeep...), 0)
	}
	wantError(t, thrift.Unmarshal(tooDeep, &unknown.Nothing{}), "unknown.Nothing", "field 99", "nest deeper than 64")
	wantError(t, thrift.Unmarshal(tooDeep, &unknown.Choice{}), "unknown.Choice", "field 99", "nest deeper than 64")
	wantError(t, thrift.Unmarshal([]byte{11, 0, 99, 0, 0, 0, 9, 'a'}, &unknown.Nothing{}), "field 99", "unknown.Nothing: field 99", "value reaches")

}

// TestUnknown_CountsAsMemory has fields that share the message, fields with memory of
// their own, and fields by turns with known ones, which no memory is one piece for.
func TestUnknown_CountsAsMemory(t *testing.T) {
	const fieldBytes, n = 7, 100_000
	known, other := []byte{8, 0, 1, 0, 0, 0, 1}, []byte{8, 0, 99, 0, 0, 0, 2}
	run := append(bytes.Repeat(other, n), 0)
	turns := append(bytes.Repeat(append(known, other...), n), 0)
	for name, test := range map[string]struct {
		message     []byte
		strings     thrift.Strings
		least, most int64
	}{
		"shared":   {run, thrift.StringsMessage, 0, 0},
		"own":      {run, thrift.StringsOwn, n * fieldBytes, n * fieldBytes},
		"by turns": {turns, thrift.StringsMessage, n * fieldBytes, 4 * n * fieldBytes},
	} {
		const noise = 64 << 10
		var s unknown.Point
		var err error
		got := testkit.Allocated(test.most+noise, func() {
			s = unknown.Point{}
			err = thrift.UnmarshalOwned(test.message, &s, thrift.UnmarshalConfig{Strings: test.strings})
		})
		if got := s.UnknownFields.SizeThrift(); err != nil || got != n*fieldBytes {
			t.Errorf("%s: %d bytes kept, %v", name, got, err)
		}
		if got < test.least || got > test.most+noise {
			t.Errorf("%s: %d bytes allocated, want %d to %d", name, got, test.least, test.most)
		}
		m := limits.DefaultMessage()
		m.DecodeBytesMax = n * fieldBytes / 2
		_, err = thrift.Codec{Strings: test.strings}.ReadBody(test.message, &s, m, false)
		wantError(t, err, "unknown.Point", "bytes more memory than a message of")
	}
}

// FuzzKeepUnknown: what a newer definition reads, it reads again from what an older
// one has passed on; and what the older one passes on stays as it is.
func FuzzKeepUnknown(f *testing.F) {
	for seed := range uint64(4) {
		message, err := thrift.Marshal(newFilled(newer.NewMessage(), seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Add([]byte{10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 2, 0, 99, 1, 8, 0, 4, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var older unknown.Message
		if err := thrift.Unmarshal(b, &older); err == nil {
			checkStable(t, &older)
		}
		var sent newer.Message
		if err := thrift.Unmarshal(b, &sent); err != nil {
			return
		}
		message, err := thrift.Marshal(&sent)
		if err != nil {
			return // a union without an arm
		}
		older = unknown.Message{}
		if err := thrift.Unmarshal(message, &older); err != nil {
			if !tooMuch(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := thrift.Marshal(&older)
		if err != nil {
			t.Fatal(err)
		}
		var received newer.Message
		if err := thrift.Unmarshal(again, &received); err != nil || !received.Equal(&sent) {
			t.Errorf("%v\nsent     %v\nreceived %v", err, &sent, &received)
		}
	})
}

// tooMuch says that an error is about memory: what two definitions take differs.
func tooMuch(err error) bool {
	return err != nil && strings.Contains(err.Error(), "bytes more memory than a message of")
}

func checkStable(t *testing.T, s *unknown.Message) {
	message, err := thrift.Marshal(s)
	if err != nil {
		return // a union without an arm
	}
	var again unknown.Message
	policy := thrift.Strings(rand.New(rand.NewPCG(uint64(len(message)), 0)).IntN(3))
	if err := thrift.UnmarshalOwned(message, &again, thrift.UnmarshalConfig{Strings: policy}); err != nil {
		if !tooMuch(err) {
			t.Fatal(err)
		}
		return
	}
	if !again.Equal(s) || again.SizeThrift() != len(message) {
		t.Errorf("%v became %v", s, &again)
	}
}
