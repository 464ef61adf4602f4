package business

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"

	"github.com/fulmar-rpc/fulmar/test/kitexshape/gen/kitex/common"
	"github.com/fulmar-rpc/fulmar/test/kitexshape/gen/kitex/shape"
)

// Struct is what every struct can do.
type Struct interface {
	BLength() int
	FastWrite(buf []byte) int
	FastRead(buf []byte) (int, error)
	InitDefault()
}

// News are the constructors of all structs.
func News() map[string]func() Struct {
	return map[string]func() Struct{
		"Point":      func() Struct { return common.NewPoint() },
		"Broken":     func() Struct { return common.NewBroken() },
		"Leaf":       func() Struct { return shape.NewLeaf() },
		"Scalars":    func() Struct { return shape.NewScalars() },
		"Required":   func() Struct { return shape.NewRequired() },
		"Optional":   func() Struct { return shape.NewOptional() },
		"Defaults":   func() Struct { return shape.NewDefaults() },
		"Containers": func() Struct { return shape.NewContainers() },
		"Tree":       func() Struct { return shape.NewTree() },
		"Choice":     func() Struct { return shape.NewChoice() },
		"Preset":     func() Struct { return shape.NewPreset() },
		"Failed":     func() Struct { return shape.NewFailed() },
		"Nothing":    func() Struct { return shape.NewNothing() },
		"Names":      func() Struct { return shape.NewNames() },
		"NewThing":   func() Struct { return shape.NewNewThing_() },
		"SnakeCase":  func() Struct { return shape.NewSnakeCaseName() },
		"Forest":     func() Struct { return shape.NewForest_() },
	}
}

// Values are those that functions above make, by the names of their constructors.
func Values() map[string][]Struct {
	values := map[string][]Struct{
		"Containers": {Containers(), shape.NewContainers(), &shape.Containers{Leaves: []*shape.Leaf{nil, nil}}},
		"Tree":       {Trees(), shape.NewTree(), (*shape.Tree)(nil)},
		"Names":      {Names()},
		"Failed":     {&shape.Failed{Reason: "r"}},
		"Required":   {shape.NewRequired(), &shape.Required{Leaf: shape.LEAF, Leaves: shape.LEAVES}},
		"Scalars":    {&shape.Scalars{Color: shape.Color(-1), Bytes: nil, Word: "w", Stamp: 5, Level: common.Level_HIGH}},
		"Leaf":       {shape.LEAF},
		"Preset":     {&shape.Preset{Number: 6}, &shape.Preset{Number: 5, Text: newString("t")}},
	}
	for _, o := range Optional() {
		values["Optional"] = append(values["Optional"], o)
	}
	for _, d := range Defaults() {
		values["Defaults"] = append(values["Defaults"], d)
	}
	choices, _ := Unions()
	for _, choice := range choices {
		values["Choice"] = append(values["Choice"], choice)
	}
	return values
}

// Bytes writes a struct with the methods of Kitex.
func Bytes(s Struct) []byte {
	buf := make([]byte, s.BLength())
	return buf[:s.FastWrite(buf)]
}

// Filled returns a struct with values at random.
func Filled(name string, seed uint64) Struct {
	s := News()[name]()
	fill(rand.New(rand.NewPCG(seed, 0)), reflect.ValueOf(s).Elem(), 0)
	return s
}

const nesting = 5

func fill(random *rand.Rand, v reflect.Value, depth int) {
	length := random.IntN(4)
	if depth > nesting {
		length = 0
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 1)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(int32(random.Uint32())) >> (32 - min(32, v.Type().Bits())))
	case reflect.Uint8:
		v.SetUint(random.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(random.NormFloat64())
	case reflect.String:
		v.SetString(fmt.Sprint("text ", random.IntN(1000)))
	case reflect.Pointer:
		if depth > nesting || random.IntN(5) == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := range length {
			fill(random, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range length {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(random, key, depth+1)
			fill(random, element, depth+1)
			if key.Kind() != reflect.Pointer || !key.IsNil() {
				v.SetMapIndex(key, element)
			}
		}
	case reflect.Struct:
		if strings.HasSuffix(v.Type().Name(), "Choice") {
			fillChoice(random, v, depth)
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(random, v.Field(i), depth+1)
			}
		}
	}
	if preset, ok := v.Addr().Interface().(*shape.Preset); ok {
		*preset = shape.Preset{Number: preset.Number | 8}
	}
}

func fillChoice(random *rand.Rand, v reflect.Value, depth int) {
	field := v.Field(random.IntN(v.NumField()))
	for field.IsNil() {
		fill(random, field, min(depth, nesting-1))
	}
}

// Text shows a value through pointers, without the names of types.
func Text(v any) string {
	var out strings.Builder
	write(&out, reflect.ValueOf(v))
	return out.String()
}

func write(out *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			out.WriteString("nil")
			return
		}
		out.WriteString("&")
		write(out, v.Elem())
	case reflect.Struct:
		out.WriteString("{")
		for i := range v.NumField() {
			out.WriteString(v.Type().Field(i).Name + ":")
			write(out, v.Field(i))
			out.WriteString(" ")
		}
		out.WriteString("}")
	case reflect.Slice:
		if v.IsNil() {
			out.WriteString("nil")
			return
		}
		out.WriteString("[")
		for i := range v.Len() {
			write(out, v.Index(i))
			out.WriteString(" ")
		}
		out.WriteString("]")
	case reflect.Map:
		if v.IsNil() {
			out.WriteString("nil")
			return
		}
		var entries []string
		for key, value := range v.Seq2() {
			var entry strings.Builder
			write(&entry, key)
			entry.WriteString(":")
			write(&entry, value)
			entries = append(entries, entry.String())
		}
		sort.Strings(entries)
		fmt.Fprintf(out, "%q", entries)
	default:
		fmt.Fprintf(out, "%v", v)
	}
}
