// Package roundtripkitex_test runs the code in the golden files of package emit that
// has the shape of Kitex. It is a folder of its own for the same reason as roundtrip.
package roundtripkitex_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/common"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexnested/golden/inner"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexnested/golden/outer"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
	"github.com/fulmar-rpc/fulmar/thrift/methods"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// kitexStruct is what declared structs can do.
type kitexStruct interface {
	thrift.Struct
	InitDefault()
	BLength() int
	FastWrite(buf []byte) int
	FastWriteNocopy(buf []byte, w methods.NocopyWriter) int
	FastRead(buf []byte) (int, error)
	String() string
}

// declared are all declared structs of the golden files.
var declared = []kitexStruct{
	common.NewPoint(), common.NewBroken(),
	shape.NewLeaf(), shape.NewScalars(), shape.NewRequired(), shape.NewOptional(), shape.NewDefaults(), shape.NewContainers(),
	shape.NewTree(), shape.NewChoice(), shape.NewPreset(), shape.NewFailed(), shape.NewNothing(), shape.NewNames(),
	shape.NewNewThing_(), shape.NewSnakeCaseName(), shape.NewForest_(),
	own.NewKey(), own.NewInner(), own.NewOwn(), own.NewOneOf(), own.NewTaken(), own.NewKeeps(), own.NewKeepsArm(), own.NewKeepsPreset(), own.NewWide(), own.NewWides(),
	inner.NewBase(), outer.NewAliased(), outer.NewChain(), outer.NewEither(), outer.NewFailed(), outer.NewPoint(), outer.NewReply(),
	outer.NewRequest(), outer.NewSize(),
	own.NewHeavy(), own.NewItem(), own.NewFilled(), own.NewHidden(), own.NewItems(), own.NewSets(),
}

// calls are arguments and results of methods.
var calls = []thrift.Struct{
	new(shape.ForestPickArgs), new(shape.ForestAllArgs), new(shape.ForestAllResult), new(shape.ForestNameResult),
	new(shape.ForestPaintResult), new(shape.ForestRawResult), new(shape.ForestPlantArgs), new(shape.ForestCountResult),
}

func TestDeclared_IsComplete(t *testing.T) {
	var listed []string
	for _, s := range declared {
		listed = append(listed, reflect.TypeOf(s).Elem().String())
	}
	files, err := filepath.Glob("../testdata/kitex*/golden/*/*_types.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	constructor := regexp.MustCompile(`(?m)^func \(s \*(\w+)\) InitDefault\(\)`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range constructor.FindAllSubmatch(content, -1) {
			if name := filepath.Base(filepath.Dir(file)) + "." + string(match[1]); !slices.Contains(listed, name) {
				t.Errorf("%s is not in the list", name)
			}
		}
	}
}

// unions are the types of which exactly one field must be set. A field with a default
// counts as not set while it equals that.
var unions = map[reflect.Type]bool{
	reflect.TypeFor[shape.Choice]():    true,
	reflect.TypeFor[shape.Preset]():    true,
	reflect.TypeFor[outer.Either]():    true,
	reflect.TypeFor[own.OneOf]():       true,
	reflect.TypeFor[own.KeepsArm]():    true,
	reflect.TypeFor[own.KeepsPreset](): true,
}

// filler gives values to everything it meets, from a seed.
type filler struct{ random *rand.Rand }

// nesting is how deep filled values go; beyond it optional fields stay absent
// and containers empty.
const nesting = 5

// fill sets v, which is nested depth deep. Structs are there wherever they are not
// optional, apart from the ends of trees: nil would come back as an empty one.
func (f filler) fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.random.IntN(2) == 1)
	case reflect.Int8, reflect.Int16, reflect.Int32:
		v.SetInt(int64(f.random.Uint64()) >> (64 - v.Type().Bits()))
	case reflect.Int64:
		v.SetInt(f.integer(v.Type()))
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
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		length := f.length(depth)
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := range length {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.length(depth) {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fill(element, depth+1)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		f.fillStruct(v, depth)
	default:
		panic(v.Type().String())
	}
}

// integer returns a number that fits the wire: enums have 4 bytes there.
func (f filler) integer(t reflect.Type) int64 {
	if t != reflect.TypeFor[int64]() && t.PkgPath() != "" {
		return int64(int32(f.random.Uint32()))
	}
	return int64(f.random.Uint64())
}

func (f filler) length(depth int) int {
	if depth >= nesting {
		return 0
	}
	return f.random.IntN(4)
}

var optional = regexp.MustCompile(`,optional"`)

func (f filler) fillStruct(v reflect.Value, depth int) {
	if unions[v.Type()] {
		f.fillUnion(v, depth)
		return
	}
	recursive := v.Type() == reflect.TypeFor[shape.Tree]()
	// Absent fields with defaults come back as those.
	defaults := v.Type() == reflect.TypeFor[shape.Defaults]() || v.Type() == reflect.TypeFor[own.Own]() || v.Type() == reflect.TypeFor[outer.Aliased]()
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		switch {
		case v.Type().Field(i).Name == "UnknownFields": // which arrive and are not made
		case optional.MatchString(string(tag)) && !defaults && (depth >= nesting || f.random.IntN(4) == 0):
		case recursive && depth >= nesting && field.Kind() == reflect.Pointer:
		default:
			f.fill(field, depth+1)
		}
	}
}

// fillUnion sets one field, of a kind that ends where values are deep.
func (f filler) fillUnion(v reflect.Value, depth int) {
	number := f.random.IntN(v.NumField())
	if v.Type().Field(number).Name == "UnknownFields" {
		number = 0
	}
	if depth >= nesting {
		number = 0
	}
	v.SetZero()
	v.Addr().Interface().(kitexStruct).InitDefault()
	if preset, ok := v.Addr().Interface().(*shape.Preset); ok && number == 0 {
		preset.Number++
		return
	}
	field := v.Field(number)
	field.SetZero()
	for field.IsZero() {
		f.fill(field, depth)
	}
}

// newFilled returns a filled value like prototype.
func newFilled[S thrift.Struct](prototype S, seed uint64) S {
	filled := reflect.New(reflect.TypeOf(prototype).Elem())
	filler{rand.New(rand.NewPCG(seed, 0))}.fill(filled.Elem(), 0)
	return filled.Interface().(S)
}
