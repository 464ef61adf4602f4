package roundtrip_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// view is what every generated view can do.
type view interface {
	thrift.Struct
	Load(b []byte) error
	AppendTo(b []byte) ([]byte, error)
	AppendPieces(pieces [][]byte, memory []byte) ([][]byte, []byte, error)
}

// viewed are the structs that have views, and new views of them.
var viewed = []struct {
	prototype thrift.Struct
	view      func() view
}{
	{views.NewPlain(), func() view { return new(views.PlainView) }},
	{views.NewPreset(), func() view { return new(views.PresetView) }},
	{views.NewOptional(), func() view { return new(views.OptionalView) }},
	{views.NewStrict(), func() view { return new(views.StrictView) }},
	{views.NewChoice(), func() view { return new(views.ChoiceView) }},
	{views.NewContainers(), func() view { return new(views.ContainersView) }},
	{views.NewNode(), func() view { return new(views.NodeView) }},
	{views.NewFailure(), func() view { return new(views.FailureView) }},
	{views.NewTyped(), func() view { return new(views.TypedView) }},
	{views.NewOctets(), func() view { return new(views.OctetsView) }},
	{views.NewDigest(), func() view { return new(views.DigestView) }},
	{views.NewLeaf(), func() view { return new(views.LeafView) }},
	{views.NewEmpty(), func() view { return new(views.EmptyView) }},
	{other.NewPlace(), func() view { return new(other.PlaceView) }},
	{views.NewInside(), func() view { return new(views.InsideView) }},
	{views.NewAround(), func() view { return new(views.AroundView) }},
}

// newLike returns a new struct of the type of a prototype, as its constructor makes it.
func newLike(prototype thrift.Struct) thrift.Struct { return cloneOf(prototype.(sized)) }

func TestView_HasTheFieldsOfTheStruct(t *testing.T) {
	for _, test := range viewed {
		t.Run(reflect.TypeOf(test.prototype).Elem().Name(), func(t *testing.T) {
			for seed := range uint64(60) {
				sent := newFilled(test.prototype, seed)
				message, err := thrift.Marshal(sent)
				if err != nil {
					t.Fatal(err)
				}
				v := test.view()
				if err := v.Load(message); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if problem := compareFields(v, sent); problem != "" {
					t.Fatalf("seed %d: %s", seed, problem)
				}
				if again, err := thrift.Marshal(v); err != nil || !bytes.Equal(again, message) {
					t.Fatalf("seed %d: written again it is %x, %v; want %x", seed, again, err, message)
				}
			}
		})
	}
}

// TestView_HasDefaults compares what is there when nothing came.
func TestView_HasDefaults(t *testing.T) {
	for _, test := range viewed {
		s, v := newLike(test.prototype), test.view()
		if err := v.Load([]byte{0}); err != nil {
			if err := thrift.Unmarshal([]byte{0}, s); err == nil {
				t.Errorf("%T: %v", v, err)
			}
			continue
		}
		if problem := compareFields(v, s); problem != "" {
			t.Errorf("%T: %s", v, problem)
		}
	}
}

// TestView_EditsLikeTheStruct sets fields of views and structs to the same, and compares
// what is in them, and what is decoded of what they write.
func TestView_EditsLikeTheStruct(t *testing.T) {
	for _, test := range viewed {
		t.Run(reflect.TypeOf(test.prototype).Elem().Name(), func(t *testing.T) {
			written := 0
			for seed := range uint64(200) {
				s := newFilled(test.prototype, seed)
				message, err := thrift.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				v := test.view()
				if err := v.Load(message); err != nil {
					t.Fatal(err)
				}
				ok, problem := editBoth(v, s, newFilled(test.prototype, seed+1000), rand.New(rand.NewPCG(seed, 2)))
				if problem != "" {
					t.Fatalf("seed %d: %s", seed, problem)
				}
				if ok {
					written++
				}
			}
			if written < 100 {
				t.Errorf("only %d of 200 could be written", written)
			}
		})
	}
}

// editBoth sets fields of v and s, which are the same, to those of donor. It says what is
// different afterwards, and whether s could be written.
func editBoth(v view, s, donor thrift.Struct, random *rand.Rand) (ok bool, problem string) {
	before, err := thrift.Marshal(v)
	if err != nil {
		return false, "" // a struct cannot be written that has a union without an arm
	}
	held := reflect.ValueOf(v).Elem().Interface() // a copy, which nothing may change
	for range random.IntN(9) {
		setOne(reflect.ValueOf(v), reflect.ValueOf(s).Elem(), reflect.ValueOf(donor).Elem(), random)
	}
	want, err := thrift.Marshal(s)
	if err != nil {
		return false, ""
	}
	got, err := thrift.Marshal(v)
	if err != nil {
		return false, fmt.Sprintf("the struct can be written, and the view not: %v", err)
	}
	if appended, err := v.AppendTo([]byte("front")); err != nil || string(appended) != "front"+string(got) {
		return false, fmt.Sprintf("it appends %x, %v, and writes %x", appended, err, got)
	}
	pieces, memory, err := v.AppendPieces([][]byte{[]byte("front")}, []byte("before"))
	if joined := string(bytes.Join(pieces, nil)); err != nil || joined != "front"+string(got) || !bytes.HasPrefix(memory, []byte("before")) {
		return false, fmt.Sprintf("its pieces are %x, %v, behind %q, and it writes %x", pieces, err, memory, got)
	}
	expected, decoded := newZero(s), newZero(s)
	if err := thrift.Unmarshal(want, expected); err != nil {
		return false, ""
	}
	if err := thrift.Unmarshal(got, decoded); err != nil {
		return false, fmt.Sprintf("what the view writes cannot be read: %v", err)
	}
	if !holdsNaNKeys(reflect.ValueOf(expected)) && !equal(expected.(sized), decoded.(sized)) {
		return false, fmt.Sprintf("the view writes\n%v, the struct\n%v", decoded, expected)
	}
	if problem := compareFields(v, s); problem != "" {
		return false, "after the edit: " + problem
	}
	loaded := reflect.New(reflect.TypeOf(v).Elem()).Interface().(view)
	if err := loaded.Load(got); err != nil {
		return false, fmt.Sprintf("what a view writes is refused: %v", err)
	}
	copied := reflect.New(reflect.TypeOf(v).Elem())
	copied.Elem().Set(reflect.ValueOf(held))
	if again, err := thrift.Marshal(copied.Interface().(view)); err != nil || !bytes.Equal(again, before) {
		return false, fmt.Sprintf("a copy that was made before has changed: %v", err)
	}
	return true, ""
}

func newZero(s thrift.Struct) thrift.Struct {
	for _, test := range viewed {
		if reflect.TypeOf(test.prototype) == reflect.TypeOf(s) {
			return newLike(test.prototype)
		}
	}
	panic(fmt.Sprintf("%T", s))
}

// setOne sets a field, or an element of one, of a view and a struct.
func setOne(v, s, donor reflect.Value, random *rand.Rand) {
	if s.NumField() == 0 {
		return
	}
	number := random.IntN(s.NumField())
	if random.IntN(3) == 0 && editWithin(v, s.Field(number), s.Type().Field(number).Name, random) {
		return
	}
	field, from, name := s.Field(number), donor.Field(number), s.Type().Field(number).Name
	union := unions[s.Type()]
	if setAt := v.MethodByName("Set" + name + "At"); setAt.IsValid() && field.Len() > 0 && random.IntN(2) == 0 {
		i, element := random.IntN(field.Len()), reflect.New(field.Type().Elem()).Elem()
		filler{random: random}.fill(element, nesting-2)
		if value, ok := passed(setAt.Type().In(1), element); ok {
			setAt.Call([]reflect.Value{reflect.ValueOf(i), value})
			changed := reflect.MakeSlice(field.Type(), field.Len(), field.Len())
			reflect.Copy(changed, field)
			changed.Index(i).Set(element)
			field.Set(changed)
		}
		return
	}
	if setPart(v, s, field, name, random) {
		return
	}
	remove := v.MethodByName("Clear" + name)
	omitted := strings.Contains(s.Type().Field(number).Tag.Get("json"), "omitzero")
	byNil := (from.Kind() == reflect.Slice || from.Kind() == reflect.Map) && random.IntN(2) == 0 // nil is set
	if remove.IsValid() && omitted && from.IsZero() && !union && !byNil {
		remove.Call(nil)
		field.SetZero()
		return
	}
	if from.Kind() == reflect.Struct && strings.HasPrefix(from.Type().Name(), "Opt[") {
		if from.IsZero() {
			return
		}
		from = from.Addr().MethodByName("Get").Call(nil)[0]
	} else if from.IsZero() && union {
		return
	}
	set := v.MethodByName("Set" + name)
	value, ok := passed(set.Type().In(0), from)
	if !ok {
		return
	}
	set.Call([]reflect.Value{value})
	if union {
		s.SetZero()
	}
	field.Set(donor.Field(number))
}

// passed returns a value of a struct as setters take it: structs as views.
func passed(want reflect.Type, value reflect.Value) (reflect.Value, bool) {
	made := reflect.New(want)
	loaded, isView := made.Interface().(view)
	if !isView {
		return value, true
	}
	if value.Kind() != reflect.Pointer {
		held := reflect.New(value.Type())
		held.Elem().Set(value)
		value = held
	}
	if value.IsNil() {
		return made, false
	}
	message, err := thrift.Marshal(value.Interface().(thrift.Struct))
	if err != nil {
		return made, false
	}
	if err := loaded.Load(message); err != nil {
		panic(err)
	}
	return made.Elem(), true
}

// compareFields says what is different in a view and a struct.
func compareFields(v view, s thrift.Struct) string {
	return compareView(reflect.ValueOf(v), reflect.ValueOf(s))
}

// compareView compares a pointer to a view and one to a struct.
func compareView(v, s reflect.Value) string {
	for i := range s.Elem().NumField() {
		if problem := compareField(v, s, i); problem != "" {
			return problem
		}
	}
	return ""
}

// compareField compares a field of a view with field i of a struct.
func compareField(v, s reflect.Value, i int) string {
	declared := s.Elem().Type().Field(i)
	get := v.MethodByName(declared.Name)
	if !get.IsValid() {
		return declared.Name + ": there is no method"
	}
	got, want := get.Call(nil)[0], s.Elem().Field(i)
	if omitted := strings.Contains(declared.Tag.Get("json"), "omitzero"); omitted {
		set := !want.IsZero()
		if has := v.MethodByName("Has" + declared.Name).Call(nil)[0].Bool(); has != set {
			return fmt.Sprintf("%s: Has is %v", declared.Name, has)
		}
		if getter := s.MethodByName("Get" + declared.Name); getter.IsValid() {
			want = getter.Call(nil)[0]
		}
	}
	if problem := compareValue(got, want); problem != "" {
		return declared.Name + ": " + problem
	}
	return ""
}

// compareValue compares a value that a view has with that of a struct.
func compareValue(got, want reflect.Value) string {
	name := got.Type().Name()
	switch {
	case strings.HasPrefix(name, "Numbers["):
		return compareNumbers(got, want)
	case strings.HasPrefix(name, "List["):
		return compareList(got, want)
	case strings.HasPrefix(name, "Map["):
		return compareMap(got, want)
	case want.Kind() == reflect.Pointer && want.IsNil():
		return "" // of which Has says that it is not there
	case want.Kind() == reflect.Pointer, want.Kind() == reflect.Struct:
		v := reflect.New(got.Type())
		v.Elem().Set(got)
		if want.Kind() != reflect.Pointer {
			held := reflect.New(want.Type())
			held.Elem().Set(want)
			want = held
		}
		return compareView(v, want)
	case want.Kind() == reflect.Slice:
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			return fmt.Sprintf("%x, want %x", got, want)
		}
	case want.Kind() == reflect.Float64:
		if math.Float64bits(got.Float()) != math.Float64bits(want.Float()) {
			return fmt.Sprintf("%v, want %v", got, want)
		}
	case got.Interface() != want.Interface():
		return fmt.Sprintf("%v, want %v", got, want)
	}
	return ""
}

func compareNumbers(got, want reflect.Value) string {
	if n := int(got.MethodByName("Len").Call(nil)[0].Int()); n != want.Len() {
		return fmt.Sprintf("%d elements, want %d", n, want.Len())
	}
	appended := got.MethodByName("AppendTo").Call([]reflect.Value{reflect.Zero(want.Type())})[0]
	for i := range want.Len() {
		for _, element := range []reflect.Value{got.MethodByName("At").Call([]reflect.Value{reflect.ValueOf(i)})[0], appended.Index(i)} {
			if problem := compareValueBits(element, want.Index(i)); problem != "" {
				return fmt.Sprintf("element %d: %s", i, problem)
			}
		}
	}
	return ""
}

func compareValueBits(got, want reflect.Value) string {
	if want.Kind() == reflect.Float64 {
		return compareValue(got, want)
	}
	if got.Interface() != want.Interface() {
		return fmt.Sprintf("%v, want %v", got, want)
	}
	return ""
}

func compareList(got, want reflect.Value) string {
	if n := int(got.MethodByName("Len").Call(nil)[0].Int()); n != want.Len() {
		return fmt.Sprintf("%d elements, want %d", n, want.Len())
	}
	for i, element := range got.MethodByName("All").Call(nil)[0].Seq2() {
		if problem := compareValue(element, want.Index(int(i.Int()))); problem != "" {
			return fmt.Sprintf("element %d: %s", i.Int(), problem)
		}
	}
	return ""
}

func compareMap(got, want reflect.Value) string {
	n := int(got.MethodByName("Len").Call(nil)[0].Int())
	i := 0
	if want.Kind() == reflect.Slice { // of pairs, in order
		if n != want.Len() {
			return fmt.Sprintf("%d entries, want %d", n, want.Len())
		}
		for key, value := range got.MethodByName("All").Call(nil)[0].Seq2() {
			pair := want.Index(i)
			if problem := compareValue(key, pair.Field(0)) + compareValue(value, pair.Field(1)); problem != "" {
				return fmt.Sprintf("entry %d: %s", i, problem)
			}
			i++
		}
		return ""
	}
	last := map[any]reflect.Value{}
	for key, value := range got.MethodByName("All").Call(nil)[0].Seq2() {
		if i++; i > n {
			break
		}
		held := reflect.New(key.Type())
		held.Elem().Set(key)
		if decode := held.MethodByName("Struct"); decode.IsValid() {
			results := decode.Call(nil)
			if !results[1].IsNil() {
				return fmt.Sprint(results[1])
			}
			key = results[0].Elem()
		}
		last[key.Interface()] = value
	}
	if i != n || len(last) != want.Len() {
		return fmt.Sprintf("%d entries, %d keys, want %d", i, len(last), want.Len())
	}
	for key, value := range last {
		there := want.MapIndex(reflect.ValueOf(key))
		if !there.IsValid() {
			return fmt.Sprintf("key %v should not be there", key)
		}
		if problem := compareValue(value, there); problem != "" {
			return fmt.Sprintf("key %v: %s", key, problem)
		}
	}
	return ""
}

// unknownLongField is what makes a message long enough for parts that are not copied,
// which a fuzzer does not find: a text in a field that no struct here has.
var unknownLongField = slices.Concat(
	[]byte{11, 0x7f, 0xf0}, binary.BigEndian.AppendUint32(nil, limits.LinkedPartBytes+1),
	bytes.Repeat([]byte("-"), limits.LinkedPartBytes+1))

// FuzzView reads any bytes as a struct and as a view: both take and refuse the same, with
// the same errors, and have the same in them, also after some of it was changed.
func FuzzView(f *testing.F) {
	for i, test := range viewed {
		for seed := range uint64(3) {
			if message, err := thrift.Marshal(newFilled(test.prototype, seed)); err == nil && len(message) < 400 {
				f.Add(byte(i), seed, message)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, seed uint64, message []byte) {
		test := viewed[int(which)%len(viewed)]
		if seed%2 == 1 {
			message = slices.Concat(unknownLongField, message)
		}
		kept := bytes.Clone(message) // the fuzzer writes over what it gave
		s, v := newLike(test.prototype), test.view()
		wanted, err := thrift.UnmarshalOwned(kept, s, thrift.UnmarshalConfig{}), v.Load(kept)
		if wanted != nil && strings.Contains(wanted.Error(), "more memory") {
			return // views take none
		}
		if (wanted == nil) != (err == nil) || err != nil && sameWords(err) != sameWords(wanted) {
			t.Fatalf("%T: the view says %v, the struct %v", s, err, wanted)
		}
		read := test.view()
		if again := thrift.Unmarshal(message, read); fmt.Sprint(again) != fmt.Sprint(err) && !strings.Contains(fmt.Sprint(again), "more memory") {
			t.Fatalf("%T: read it is %v, loaded %v", s, again, err)
		}
		if err != nil || holdsNaNKeys(reflect.ValueOf(s)) {
			return
		}
		if problem := compareFields(v, s); problem != "" {
			t.Fatalf("%T: %s", s, problem)
		}
		if again, err := thrift.Marshal(v); err != nil || !bytes.Equal(again, kept) {
			t.Fatalf("%T: forwarded it is %x, %v", s, again, err)
		}
		random := rand.New(rand.NewPCG(seed, 3))
		if problem := loadPartly(test.view(), s, kept, random); problem != "" {
			t.Fatalf("%T: %s", s, problem)
		}
		if len(kept) < limits.LinkedStringBytes {
			if problem := useLent(test.view(), s, newFilled(test.prototype, seed+1), kept, rand.New(rand.NewPCG(seed, 5))); problem != "" {
				t.Fatalf("%T: %s", s, problem)
			}
		}
		if _, problem := editBoth(v, s, newFilled(test.prototype, seed), random); problem != "" {
			t.Fatalf("%T: %s", s, problem)
		}
		if !bytes.Equal(kept, message) {
			t.Fatalf("%T: the bytes have changed", s)
		}
	})
}

// sameWords is the text of an error without what may differ. On the wire binaries are
// strings, and views do not say which of them they mean; a struct in which something is
// required does not say in which field an error is that comes before the rest of that.
func sameWords(err error) string {
	return strings.ReplaceAll(fieldNumber.ReplaceAllString(err.Error(), ""), "binary", "string")
}

var fieldNumber = regexp.MustCompile(`field -?[0-9]+: `)

// TestView_RefusesWhatTheStructRefuses cuts messages at every byte, and changes every
// byte of them.
func TestView_RefusesWhatTheStructRefuses(t *testing.T) {
	for _, test := range viewed {
		for seed := range uint64(4) {
			message, err := thrift.Marshal(newFilled(test.prototype, seed))
			if err != nil {
				t.Fatal(err)
			}
			message = message[:min(len(message), 600)]
			for end := range message {
				compareErrors(t, test.prototype, test.view(), message[:end])
				for _, mask := range []byte{0x01, 0x0f, 0x80, 0xff} {
					changed := slices.Clone(message)
					changed[end] ^= mask
					compareErrors(t, test.prototype, test.view(), changed)
				}
			}
		}
	}
}

// TestView_TakesWhatDecodingHasNoMemoryFor is the one exception: decoding is refused, also
// that of the view, and the view is not.
func TestView_TakesWhatDecodingHasNoMemoryFor(t *testing.T) {
	const nodes = 100_000
	if strconv.IntSize == 32 {
		t.Skip("with 32 bits a node takes less than the 64 bytes that decoding may for a byte of the message (DecodeBytesPerWireByte), so nothing is refused")
	}
	message := container("\x0f\x00\x15\x0c", nodes, "\x00")
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "more memory than a message of") {
			t.Errorf("%v; want an error about memory", err)
		}
	}
	refused(thrift.Unmarshal(message, views.NewContainers()))
	var v views.ContainersView
	if err := v.Load(message); err != nil {
		t.Fatal(err)
	}
	list := v.Nodes()
	if list.Len() != nodes {
		t.Errorf("%d nodes", list.Len())
	}
	_, err := v.Struct()
	refused(err)
}

func compareErrors(t *testing.T, prototype thrift.Struct, v view, message []byte) {
	t.Helper()
	s := newLike(prototype)
	wanted, err := thrift.Unmarshal(message, s), v.Load(message)
	if wanted != nil && strings.Contains(wanted.Error(), "more memory") {
		return
	}
	if (wanted == nil) != (err == nil) || err != nil && sameWords(err) != sameWords(wanted) {
		t.Fatalf("%T %x: the view says\n%v, the struct\n%v", s, message, err, wanted)
	}
	if err != nil || holdsNaNKeys(reflect.ValueOf(s)) {
		return
	}
	if problem := compareFields(v, s); problem != "" {
		t.Fatalf("%T %x: %s", s, message, problem)
	}
}
