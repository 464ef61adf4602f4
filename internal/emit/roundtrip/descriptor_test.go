package roundtrip_test

import (
	"encoding/binary"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/bounds/golden/bounds"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/deep/golden/deep"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/deepreuse/golden/deepreuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/enumtext/golden/enumtext"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/golden/fieldtypes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/hostile/golden/hostile"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/ids/golden/ids"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit"
	deepthrift "github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/deep/thrift"
	inheritthrift "github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/thrift"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/value"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/common"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitex/golden/shape"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexnested/golden/inner"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexnested/golden/outer"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/kitexown/golden/own"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/names/golden/names"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested"
	nestedcommon "github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested/common"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/retention/golden/retention"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse/other"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/sets/golden/sets"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/streams/golden/streams"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown/newer"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods/parcel"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	viewsother "github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/thrift"
	"github.com/fulmar-rpc/fulmar/thrift/descriptor"
)

// described are the descriptors of the definitions, by their files below testdata.
func described() map[string]*descriptor.File {
	return map[string]*descriptor.File{
		"bounds/bounds.thrift":           &bounds.BoundsDescriptor,
		"deep/deep.thrift":               &deep.DeepDescriptor,
		"deepreuse/deepreuse.thrift":     &deepreuse.DeepreuseDescriptor,
		"enumtext/enumtext.thrift":       &enumtext.EnumtextDescriptor,
		"fieldtypes/fieldtypes.thrift":   &fieldtypes.FieldtypesDescriptor,
		"hostile/hostile.thrift":         &hostile.HostileDescriptor,
		"ids/ids.thrift":                 &ids.IDsDescriptor,
		"inherit/inherit.thrift":         &inherit.InheritDescriptor,
		"inherit/base.thrift":            &inheritthrift.BaseDescriptor,
		"inherit/value.thrift":           &value.ValueDescriptor,
		"inherit/deep/other.thrift":      &deepthrift.OtherDescriptor,
		"kitex/kitex.thrift":             &shape.KitexDescriptor,
		"kitex/common.thrift":            &common.CommonDescriptor,
		"kitexown/kitexown.thrift":       &own.KitexownDescriptor,
		"names/names.thrift":             &names.NamesDescriptor,
		"kitexnested/kitexnested.thrift": &outer.KitexnestedDescriptor,
		"kitexnested/inner.thrift":       &inner.InnerDescriptor,
		"nested/nested.thrift":           &nested.NestedDescriptor,
		"nested/common.thrift":           &nestedcommon.CommonDescriptor,
		"orders/orders.thrift":           &orders.OrdersDescriptor,
		"recursion/recursion.thrift":     &recursion.RecursionDescriptor,
		"retention/retention.thrift":     &retention.RetentionDescriptor,
		"reuse/reuse.thrift":             &reuse.ReuseDescriptor,
		"reuse/other.thrift":             &other.OtherDescriptor,
		"sets/sets.thrift":               &sets.SetsDescriptor,
		"shapes/shapes.thrift":           &shapes.ShapesDescriptor,
		"streams/streams.thrift":         &streams.StreamsDescriptor,
		"unknown/unknown.thrift":         &unknown.UnknownDescriptor,
		"unknown/newer.thrift":           &newer.NewerDescriptor,
		"values/values.thrift":           &values.ValuesDescriptor,
		"viewmethods/viewmethods.thrift": &viewmethods.ViewmethodsDescriptor,
		"viewmethods/parcel.thrift":      &parcel.ParcelDescriptor,
		"views/views.thrift":             &views.ViewsDescriptor,
		"views/other.thrift":             &viewsother.OtherDescriptor,
	}
}

// comparer compares what descriptors say with the model that they were made from.
type comparer struct {
	*testing.T
	files map[string]*descriptor.File
	// folder is the one below testdata that the model is from.
	folder string
	count  int
}

// TestDescriptor_SaysWhatTheDefinitionSays loads the definitions and looks for
// everything in them.
func TestDescriptor_SaysWhatTheDefinitionSays(t *testing.T) {
	c := &comparer{T: t, files: described()}
	definitions, err := filepath.Glob("../testdata/*/*.thrift")
	if err != nil || len(definitions) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	compared := 0
	for _, name := range definitions {
		c.folder = filepath.Base(filepath.Dir(name))
		if c.folder+".thrift" != filepath.Base(name) {
			continue // the one that includes it
		}
		program, diagnostics := idl.Load(idl.Options{Files: []string{filepath.ToSlash(name)}, AllowNegativeIDs: true})
		if program == nil {
			t.Fatal(diagnostics)
		}
		for _, file := range program.Files {
			if c.of(file) == nil {
				t.Fatalf("%s/%s is not in the list", c.folder, file.Path)
			}
			compared++
			c.file(c.of(file), file)
		}
	}
	if compared != len(c.files) {
		t.Errorf("%d files were compared of %d", compared, len(c.files))
	}
	if c.count < 1000 {
		t.Errorf("only %d things were compared", c.count)
	}
}

// of is the descriptor of a file.
func (c *comparer) of(file *schema.File) *descriptor.File { return c.files[c.folder+"/"+file.Path] }

// same fails the test unless two things are equal.
func (c *comparer) same(what string, got, want any) {
	c.Helper()
	if c.count++; !reflect.DeepEqual(got, want) {
		c.Errorf("%s is %v, want %v", what, got, want)
	}
}

func (c *comparer) file(file *descriptor.File, want *schema.File) {
	got, err := file.Definition()
	if err != nil {
		c.Fatal(err)
	}
	c.same("name", got.Name, path.Base(want.Path))
	c.same("namespaces", len(got.Namespaces), len(want.Namespaces))
	for language, namespace := range want.Namespaces {
		c.same("namespace", got.Namespaces[language], namespace)
	}
	for i, typedef := range want.Typedefs {
		c.same("typedef", got.Typedefs[i].Name, typedef.Name)
		c.typ(file, &got.Typedefs[i].Type, typedef.Type)
		c.annotations(got.Typedefs[i].Annotations, typedef.Annotations)
	}
	for _, enum := range want.Enums {
		found, err := file.Enum(enum.Name)
		if err != nil {
			c.Fatal(err)
		}
		c.enum(found, enum)
	}
	for _, s := range want.Structs {
		found, err := file.Struct(s.Name)
		if err != nil {
			c.Fatal(err)
		}
		c.same("category", strings.ToLower(found.Category.String()), s.Category.String())
		c.annotations(found.Annotations, s.Annotations)
		c.fields(file, found.Fields, s.Fields)
	}
	for _, service := range want.Services {
		found, err := file.Service(service.Name)
		if err != nil {
			c.Fatal(err)
		}
		c.service(file, found, service)
	}
	c.same("lists", []int{len(got.Typedefs), len(got.Enums), len(got.Structs), len(got.Services)},
		[]int{len(want.Typedefs), len(want.Enums), len(want.Structs), len(want.Services)})
}

func (c *comparer) enum(got *descriptor.Enum, want *schema.Enum) {
	c.same("values of "+want.Name, len(got.Values), len(want.Values))
	for i, value := range want.Values {
		c.same("value", got.Values[i].Name, value.Name)
		c.same("number", got.Values[i].Number, value.Number)
		c.annotations(got.Values[i].Annotations, value.Annotations)
	}
	c.annotations(got.Annotations, want.Annotations)
}

func (c *comparer) annotations(got []descriptor.Annotation, want schema.Annotations) {
	c.same("annotations", len(got), len(want))
	for i, annotation := range want {
		c.same("annotation", [2]string{got[i].Key, got[i].Value}, [2]string{annotation.Key, annotation.Value})
	}
}

func (c *comparer) fields(file *descriptor.File, got []descriptor.Field, want []*schema.Field) {
	c.same("fields", len(got), len(want))
	for i, field := range want {
		c.same("field", got[i].Name, field.Name)
		c.same("id", got[i].ID, field.ID)
		c.same("requiredness", strings.ToLower(got[i].Requiredness.String()), field.Requiredness.String())
		c.same("default", got[i].Value != nil, field.Default != nil)
		c.typ(file, &got[i].Type, field.Type)
		c.annotations(got[i].Annotations, field.Annotations)
	}
}

func (c *comparer) typ(file *descriptor.File, got *descriptor.Type, want *schema.Type) {
	c.same("kind", strings.ToLower(got.Kind.String()), want.Kind.String())
	typedef := ""
	if want.Typedef != nil {
		if typedef = want.Typedef.Name; c.of(want.Typedef.File) != file {
			typedef = want.Typedef.File.Base + "." + typedef
		}
	}
	c.same("typedef", got.Typedef, typedef)
	c.annotations(got.Annotations, want.Annotations)
	c.same("parts", [2]bool{got.Key != nil, got.Element != nil}, [2]bool{want.Key != nil, want.Element != nil})
	if want.Key != nil {
		c.typ(file, got.Key, want.Key)
	}
	if want.Element != nil {
		c.typ(file, got.Element, want.Element)
	}
	switch {
	case want.Struct != nil:
		s, declaring, err := file.StructOf(got)
		if err != nil {
			c.Fatal(err)
		}
		c.same("struct", s.Name, want.Struct.Name)
		c.same("file of "+s.Name, declaring == c.of(want.Struct.File), true)
	case want.Enum != nil:
		enum, err := file.EnumOf(got)
		if err != nil {
			c.Fatal(err)
		}
		c.same("enum", enum.Name, want.Enum.Name)
	}
}

func (c *comparer) service(file *descriptor.File, got *descriptor.Service, want *schema.Service) {
	c.annotations(got.Annotations, want.Annotations)
	parent, _, err := file.Parent(got)
	if err != nil || (parent != nil) != (want.Extends != nil) {
		c.Fatalf("%s extends %v, %v", want.Name, parent, err)
	}
	if parent != nil {
		c.same("parent", parent.Name, want.Extends.Name)
	}
	c.same("methods", len(got.Methods), len(want.Methods))
	for ancestor := want; ancestor != nil; ancestor = ancestor.Extends {
		for _, method := range ancestor.Methods {
			found, declaring, err := file.Method(got, method.Name)
			if err != nil {
				c.Fatal(err)
			}
			c.same("oneway", found.Oneway, method.Oneway)
			c.typ(declaring, &found.Result, method.Result)
			c.fields(declaring, found.Arguments, method.Arguments)
			c.fields(declaring, found.Exceptions, method.Throws)
			c.annotations(found.Annotations, method.Annotations)
		}
	}
}

// wireCodes are the type codes of kinds.
func wireCode(kind descriptor.Kind) thrift.Type {
	return map[descriptor.Kind]thrift.Type{
		descriptor.Kind_BOOL: thrift.Bool, descriptor.Kind_I8: thrift.I8, descriptor.Kind_I16: thrift.I16,
		descriptor.Kind_I32: thrift.I32, descriptor.Kind_I64: thrift.I64, descriptor.Kind_DOUBLE: thrift.Double,
		descriptor.Kind_STRING: thrift.String, descriptor.Kind_BINARY: thrift.String, descriptor.Kind_UUID: thrift.UUIDType,
		descriptor.Kind_ENUM: thrift.I32, descriptor.Kind_STRUCT: thrift.StructType, descriptor.Kind_LIST: thrift.List,
		descriptor.Kind_SET: thrift.Set, descriptor.Kind_MAP: thrift.Map,
	}[kind]
}

// TestDescriptor_DefaultsAreThoseOfNew decodes the defaults of every struct as if a peer
// had sent them, and looks for them in what its constructor returns: fields of the
// descriptor are in the order of the Go struct.
func TestDescriptor_DefaultsAreThoseOfNew(t *testing.T) {
	structs, defaults := 0, 0
	for _, prototype := range declared {
		s, ok := prototype.(descriptor.Described)
		if !ok {
			continue
		}
		structs++
		found, _, err := descriptor.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		var message []byte
		for _, field := range found.Fields {
			if field.Value != nil {
				message = binary.BigEndian.AppendUint16(append(message, byte(wireCode(field.Type.Kind))), uint16(field.ID))
				message = append(message, field.Value...)
			}
		}
		received := reflect.New(reflect.TypeOf(s).Elem())
		err = thrift.Unmarshal(append(message, 0), received.Interface().(thrift.Struct))
		if err != nil && !strings.Contains(err.Error(), "required but absent") {
			t.Fatalf("%s: %v", found.Name, err)
		}
		for i, field := range found.Fields {
			made := reflect.ValueOf(s).Elem().Field(i)
			if field.Value == nil || field.Requiredness == descriptor.Requiredness_OPTIONAL || found.Category == descriptor.Category_UNION {
				continue
			}
			defaults++
			if got := received.Elem().Field(i); !reflect.DeepEqual(got.Interface(), made.Interface()) {
				t.Errorf("%s.%s: %v, want %v", found.Name, field.Name, got, made)
			}
		}
	}
	if structs < 50 || defaults < 20 {
		t.Errorf("%d structs with %d defaults", structs, defaults)
	}
}

func TestDescriptor_OfNilPointers(t *testing.T) {
	var none *orders.Order
	s, file, err := descriptor.Of(none)
	if err != nil || s.Name != "Order" || file != &orders.OrdersDescriptor {
		t.Errorf("%v, %v", s, err)
	}
	names := make([]string, len(s.Fields))
	for i, field := range s.Fields {
		names[i] = field.Name
	}
	if want := []string{"id", "status", "items", "totals", "gift"}; !slices.Equal(names, want) {
		t.Errorf("fields %v, want %v", names, want)
	}
}

// TestDescriptor_IsForManyGoroutines asks a file that nobody has asked before.
func TestDescriptor_IsForManyGoroutines(t *testing.T) {
	file := &descriptor.File{Encoded: shapes.ShapesDescriptor.Encoded}
	var wait sync.WaitGroup
	found := make([]*descriptor.Struct, 8)
	for i := range found {
		wait.Go(func() { found[i], _ = file.Struct("Point") })
	}
	wait.Wait()
	for _, s := range found {
		if s == nil || s != found[0] {
			t.Errorf("%v and %v", s, found[0])
		}
	}
}
