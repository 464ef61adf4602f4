package codec_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/thrift"
)

// filler gives values to what it meets, as a program could that uses the structs: nil
// and empty containers, absent fields, long texts.
type filler struct{ source }

// fill sets v, which is nested depth deep.
func (f filler) fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.oneOf(2))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.random.Uint64()) >> f.random.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Uint8:
		v.SetUint(f.random.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(f.random.NormFloat64())
	case reflect.String:
		n := f.random.IntN(12)
		if f.oneOf(200) {
			n = f.random.IntN(80 << 10)
		}
		v.SetString(strings.Repeat(string(rune(f.random.IntN(0x300))), n))
	case reflect.Pointer:
		if depth < nesting && !f.oneOf(3) {
			f.fillPresent(v, depth)
		}
	case reflect.Slice:
		f.fillSlice(v, depth)
	case reflect.Map:
		if f.oneOf(6) {
			return // nil
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range f.length(depth) {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fillPresent(element, depth+1)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		f.fillStruct(v, depth)
	default:
		panic(v.Type().String())
	}
}

// fillPresent is fill for the value of a map, which is not nil if it is a struct.
func (f filler) fillPresent(v reflect.Value, depth int) {
	if v.Kind() != reflect.Pointer {
		f.fill(v, depth)
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	f.fill(v.Elem(), depth+1)
}

func (f filler) length(depth int) int {
	if depth >= nesting {
		return 0
	}
	if f.oneOf(100) {
		return f.random.IntN(40)
	}
	return f.random.IntN(4)
}

func (f filler) fillSlice(v reflect.Value, depth int) {
	if f.oneOf(6) {
		return // nil
	}
	length := f.length(depth)
	v.Set(reflect.MakeSlice(v.Type(), length, length))
	for i := range length {
		f.fill(v.Index(i), depth+1)
	}
}

func (f filler) fillStruct(v reflect.Value, depth int) {
	switch t := v.Type(); {
	case strings.HasPrefix(t.Name(), "Opt["):
		if set := v.Addr().MethodByName("Set"); !f.oneOf(3) {
			value := reflect.New(set.Type().In(0)).Elem()
			f.fill(value, depth)
			set.Call([]reflect.Value{value})
		}
	case t.Name() == "Shape": // the union
		for set := v.Field(f.random.IntN(v.NumField())); set.IsZero(); {
			if depth >= nesting {
				set = v.FieldByName("Name")
			}
			f.fill(set, depth)
		}
	default:
		for i := range v.NumField() {
			f.fill(v.Field(i), depth+1)
		}
	}
}

// travel sends a value to a peer, and what the peer writes back.
func travel(t *testing.T, s *subject, seed uint64) {
	t.Helper()
	value := s.ours()
	filler{source{rand.New(rand.NewPCG(seed, 0))}}.fill(reflect.ValueOf(value).Elem(), 0)
	message, err := thrift.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	meaning, end, noted, err := walk(s.record, message)
	if err != nil || end != len(message) || noted.arms || noted.mixedUp {
		t.Fatalf("%s: we write %s: %+v, %v", s.name, inHex(message), noted, err)
	}
	c := &comparison{t: t, subject: s, message: message, meaning: meaning, noted: noted}
	for who, r := range map[string]result{"Kitex": s.byKitex(message), "Apache": s.byApache(message)} {
		c.same(who, r)
		if r.unwritten != nil {
			continue
		}
		back := s.ours()
		if err := thrift.Unmarshal(r.written, back); err != nil {
			c.fatalf("%s write %s: %v", who, inHex(r.written), err)
		}
		// Peers leave optional fields out that hold their default.
		if equal := reflect.ValueOf(value).MethodByName("Equal").Call([]reflect.Value{reflect.ValueOf(back)})[0].Bool(); !equal && s.name != "Defaults" {
			c.fatalf("%s make %v of %v", who, back, value)
		}
	}
}

func TestValues_ArriveAndComeBack(t *testing.T) {
	all := subjects()
	for seed := range uint64(rounds / 10) {
		travel(t, all[seed%uint64(len(all))], seed)
	}
}

// FuzzValues has values of ours go to the peers and back. A fuzzer learns little from
// numbers that are seeds; what it adds is time.
func FuzzValues(f *testing.F) {
	all := subjects()
	for i := range all {
		f.Add(byte(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, which byte, seed uint64) {
		travel(t, all[int(which)%len(all)], seed)
	})
}
