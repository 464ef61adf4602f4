// Package roundtrip_test runs the code in the golden files of package emit. It
// is a folder of its own so that golden files that do not compile can still be
// rewritten by the tests of emit.
package roundtrip_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/golden/fieldtypes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/ids/golden/ids"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/retention/golden/retention"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/sets/golden/sets"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown/newer"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// unions are the types of which exactly one field must be set.
var unions = map[reflect.Type]bool{
	reflect.TypeFor[shapes.Shape]():         true,
	reflect.TypeFor[values.Choice]():        true,
	reflect.TypeFor[recursion.Expression](): true,
	reflect.TypeFor[fieldtypes.Either]():    true,
	reflect.TypeFor[fieldtypes.Content]():   true,
	reflect.TypeFor[ids.Either]():           true,
	reflect.TypeFor[nested.Either]():        true,
	reflect.TypeFor[retention.Either]():     true,
	reflect.TypeFor[reuse.Value]():          true,
	reflect.TypeFor[sets.Arm]():             true,
	reflect.TypeFor[sets.Choice]():          true,
	reflect.TypeFor[sets.MapArm]():          true,
	reflect.TypeFor[unknown.Choice]():       true,
	reflect.TypeFor[newer.Choice]():         true,
	reflect.TypeFor[views.Choice]():         true,
	reflect.TypeFor[views.Digest]():         true,
	reflect.TypeFor[viewmethods.Choice]():   true,
}

// filler gives values to everything it meets, from a seed.
type filler struct {
	random *rand.Rand
	// known leaves out unknown fields.
	known bool
	// distinct leaves out elements that are there already.
	distinct bool
}

// nesting is how deep filled values go; beyond it optional fields stay absent
// and containers empty.
const nesting = 5

// fill sets v, which is nested depth deep.
func (f filler) fill(v reflect.Value, depth int) {
	switch {
	case strings.HasPrefix(v.Type().Name(), "Opt["):
		f.fillOpt(v, depth)
		return
	case unions[v.Type()]:
		f.fillUnion(v, depth)
		return
	case v.Type() == reflect.TypeFor[thrift.Unknown]():
		if !f.known {
			v.Set(reflect.ValueOf(unknownFields(f.random.IntN(1000))))
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.random.IntN(2) == 1)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.random.Uint64()) >> (64 - v.Type().Bits()))
	case reflect.Uint8:
		v.SetUint(f.random.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(f.random.NormFloat64())
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", f.random.IntN(1000)))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), depth)
		}
	case reflect.Pointer:
		if depth < nesting {
			f.fillPresent(v, depth)
		}
	case reflect.Slice:
		f.fillSlice(v, depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.length(depth) {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fillPresent(element, depth+1)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if strings.HasPrefix(v.Type().Name(), "Pair[") {
				f.fillPresent(v.Field(i), depth+1)
			} else {
				f.fill(v.Field(i), depth+1)
			}
		}
	default:
		panic(v.Type().String())
	}
}

// fillPresent is fill for what must not be nil, such as a struct that is the value of a
// map.
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
	return f.random.IntN(4)
}

func (f filler) fillSlice(v reflect.Value, depth int) {
	length := f.length(depth)
	v.Set(reflect.MakeSlice(v.Type(), length, length))
	kept := 0
	for i := range length {
		f.fill(v.Index(i), depth+1)
		if !f.distinct || !holds(v.Slice(0, kept), v.Index(i)) {
			v.Index(kept).Set(v.Index(i))
			kept++
		}
	}
	v.SetLen(kept)
}

// holds reports whether an element of a slice is like another one.
func holds(list, element reflect.Value) bool {
	for i := range list.Len() {
		if reflect.DeepEqual(list.Index(i).Interface(), element.Interface()) {
			return true
		}
	}
	return false
}

func (f filler) fillOpt(v reflect.Value, depth int) {
	if f.random.IntN(4) == 0 {
		return
	}
	set := v.Addr().MethodByName("Set")
	value := reflect.New(set.Type().In(0)).Elem()
	f.fill(value, depth)
	set.Call([]reflect.Value{value})
}

// fillUnion sets one field, of a kind that ends where values are deep.
func (f filler) fillUnion(v reflect.Value, depth int) {
	number := f.random.IntN(v.NumField())
	if depth >= nesting || f.known && v.Field(number).Type() == reflect.TypeFor[thrift.Unknown]() {
		number = 0
	}
	field := v.Field(number)
	for field.IsZero() {
		f.fill(field, depth)
	}
}

// newFilled returns a filled value like prototype.
func newFilled(prototype thrift.Struct, seed uint64) thrift.Struct {
	return fillLike(prototype, filler{random: rand.New(rand.NewPCG(seed, 0))})
}

// newKnown is newFilled without unknown fields.
func newKnown(prototype thrift.Struct, seed uint64) thrift.Struct {
	return fillLike(prototype, filler{random: rand.New(rand.NewPCG(seed, 0)), known: true})
}

func fillLike(prototype thrift.Struct, f filler) thrift.Struct {
	switch t := reflect.TypeOf(prototype).Elem(); {
	case t.PkgPath() == reflect.TypeFor[sets.Scalars]().PkgPath(), t == reflect.TypeFor[reuse.Marked]():
		f.distinct = true
	}
	filled := reflect.New(reflect.TypeOf(prototype).Elem())
	f.fill(filled.Elem(), 0)
	return filled.Interface().(thrift.Struct)
}

// unknownFields returns a field that none of these definitions has.
func unknownFields(number int) thrift.Unknown {
	message, err := thrift.Marshal(fields(func(m *message) { m.FieldString(99, fmt.Sprintf("unknown %d", number)) }))
	var received unknown.Nothing
	if err == nil {
		err = thrift.Unmarshal(message, &received)
	}
	if err != nil {
		panic(err)
	}
	return received.UnknownFields
}
