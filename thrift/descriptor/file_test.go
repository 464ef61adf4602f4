package descriptor_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/thrift"
	"github.com/fulmar-rpc/fulmar/thrift/descriptor"
)

// encode returns a file that says what the definition does.
func encode(t testing.TB, definition *descriptor.Definition, imports ...*descriptor.File) *descriptor.File {
	t.Helper()
	encoded, err := thrift.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	return &descriptor.File{Encoded: string(encoded), Imports: imports}
}

// shop is a definition with a bit of everything, common what it refers to.
func shop(t testing.TB) (shop, common *descriptor.File) {
	t.Helper()
	common = encode(t, &descriptor.Definition{
		Name:     "common.thrift",
		Structs:  []descriptor.Struct{{Name: "Money"}},
		Enums:    []descriptor.Enum{{Name: "Currency", Values: []descriptor.EnumValue{{Name: "EUR", Number: 978}}}},
		Services: []descriptor.Service{{Name: "Base", Methods: []descriptor.Method{{Name: "ping"}}}},
	})
	shop = encode(t, &descriptor.Definition{
		Name: "shop.thrift",
		Structs: []descriptor.Struct{{Name: "Order", Fields: []descriptor.Field{
			{ID: 1, Name: "price", Type: descriptor.Type{Kind: descriptor.Kind_STRUCT, Name: "Money", File: 1}},
			{ID: 2, Name: "currency", Type: descriptor.Type{Kind: descriptor.Kind_ENUM, Name: "Currency", File: 1}, Value: []byte{0, 0, 3, 210}},
			{ID: 3, Name: "parent", Type: descriptor.Type{Kind: descriptor.Kind_STRUCT, Name: "Order"}},
			{ID: 4, Name: "lost", Type: descriptor.Type{Kind: descriptor.Kind_STRUCT, Name: "Order", File: 2}},
			{ID: 5, Name: "negative", Type: descriptor.Type{Kind: descriptor.Kind_ENUM, Name: "Order", File: -1}},
		}}},
		Services: []descriptor.Service{
			{Name: "Shop", Parent: "Base", ParentFile: 1, Methods: []descriptor.Method{{Name: "buy"}}},
			{Name: "Loop", Parent: "Pool"}, {Name: "Pool", Parent: "Loop"},
			{Name: "Orphan", Parent: "Gone"}, {Name: "Stray", Parent: "Base", ParentFile: 7},
		},
	}, common)
	return shop, common
}

// wantError fails the test unless an error has a text.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %q", err, text)
	}
}

func TestFile_FindsWhatIsDeclared(t *testing.T) {
	shop, common := shop(t)
	order, err := shop.Struct("Order")
	if err != nil {
		t.Fatal(err)
	}
	money, file, err := shop.StructOf(&order.Fields[0].Type)
	if err != nil || money.Name != "Money" || file != common {
		t.Errorf("%v, %v", money, err)
	}
	currency, err := shop.EnumOf(&order.Fields[1].Type)
	if err != nil || currency.Values[0].Number != 978 {
		t.Errorf("%v, %v", currency, err)
	}
	parent, file, err := shop.StructOf(&order.Fields[2].Type)
	if err != nil || parent != order || file != shop {
		t.Errorf("%v, %v", parent, err)
	}
	service, err := shop.Service("Shop")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]*descriptor.File{"buy": shop, "ping": common} {
		if method, file, err := shop.Method(service, name); err != nil || method.Name != name || file != want {
			t.Errorf("%s: %v, %v", name, method, err)
		}
	}
	definition, err := shop.Definition()
	if err != nil || len(definition.Structs) != 1 || &definition.Structs[0] != order {
		t.Errorf("%v, %v", definition, err)
	}
}

func TestFile_SaysWhatIsMissing(t *testing.T) {
	shop, _ := shop(t)
	order, err := shop.Struct("Order")
	if err != nil {
		t.Fatal(err)
	}
	_, err = shop.Struct("Shop")
	wantError(t, err, `descriptor: struct "Shop" in "shop.thrift": not declared`)
	if !errors.Is(err, descriptor.ErrNotFound) {
		t.Errorf("%v is not ErrNotFound", err)
	}
	_, err = shop.Enum("Order")
	wantError(t, err, `enum "Order" in "shop.thrift": not declared`)
	_, err = shop.Service("Order")
	wantError(t, err, `service "Order" in "shop.thrift": not declared`)
	_, _, err = shop.StructOf(&order.Fields[1].Type)
	wantError(t, err, "a type is ENUM, expected STRUCT")
	_, err = shop.EnumOf(&order.Fields[0].Type)
	wantError(t, err, "a type is STRUCT, expected ENUM")
	_, _, err = shop.StructOf(&order.Fields[3].Type)
	wantError(t, err, `file 2 of the 1 that "shop.thrift" imports`)
	_, err = shop.EnumOf(&order.Fields[4].Type)
	wantError(t, err, "file -1 of the 1")
	for name, want := range map[string]string{
		"Loop": "extends itself", "Orphan": `service "Gone" in "shop.thrift": not declared`, "Stray": "file 7 of the 1", "Shop": `method "none": not declared`,
	} {
		service, err := shop.Service(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = shop.Method(service, "none")
		wantError(t, err, want)
	}
}

// TestFile_IsDecodedToSayWhatIsMissing asks many files at once for what is not there,
// before anything else was asked. The race detector sees who looks too early.
func TestFile_IsDecodedToSayWhatIsMissing(t *testing.T) {
	shop, _ := shop(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			_, _, err := shop.StructOf(&descriptor.Type{Kind: descriptor.Kind_STRUCT, File: 9})
			wantError(t, err, `file 9 of the 1 that "shop.thrift" imports`)
			_, _, err = shop.Parent(&descriptor.Service{Parent: "Base", ParentFile: 9})
			wantError(t, err, `file 9 of the 1 that "shop.thrift" imports`)
		})
	}
	group.Wait()
}

func TestFile_RefusesOtherBytes(t *testing.T) {
	for name, encoded := range map[string]string{
		"nothing": "", "garbage": "garbage", "no name": "\x00", "cut": "\x0b\x00\x01\x00\x00\x00\x0dshop",
		"a bomb": "\x0b\x00\x01\x00\x00\x00\x00\x0f\x00\x05\x0c\x01\x31\x2d\x00",
	} {
		file := &descriptor.File{Encoded: encoded}
		_, err := file.Definition()
		wantError(t, err, "descriptor: thrift: ")
		if _, again := file.Struct("S"); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: %v, and then %v", name, err, again)
		}
	}
}

// TestFile_TakesDeepTypes has lists within lists: as many as a definition may have, and
// more.
func TestFile_TakesDeepTypes(t *testing.T) {
	for depth, want := range map[int]string{limits.IDLTypeDepth: "", limits.DescriptorDepth: "nest deeper than 72"} {
		innermost := "\x08\x00\x01\x00\x00\x00\x04\x00"
		list := strings.Repeat("\x08\x00\x01\x00\x00\x00\x0c\x0c\x00\x03", depth) + innermost + strings.Repeat("\x00", depth)
		encoded := "\x0b\x00\x01\x00\x00\x00\x01n\x0f\x00\x03\x0c\x00\x00\x00\x01\x0c\x00\x02" + list + "\x00\x00"
		_, err := (&descriptor.File{Encoded: encoded}).Definition()
		if want == "" && err != nil {
			t.Error(err)
		}
		if want != "" {
			wantError(t, err, want)
		}
	}
}

// FuzzFile asks everything of a file with any bytes, which imports another one and
// itself: no panic, no endless way, and the same answers when what was read is written
// and read again.
func FuzzFile(f *testing.F) {
	file, common := shop(f)
	f.Add(file.Encoded)
	f.Add(common.Encoded)
	f.Fuzz(func(t *testing.T, encoded string) {
		file := &descriptor.File{Encoded: encoded}
		file.Imports = []*descriptor.File{common, file, nil}
		definition, err := file.Definition()
		if err != nil {
			return
		}
		written, err := thrift.Marshal(definition)
		if err != nil {
			return // deeper than messages may nest
		}
		again, err := (&descriptor.File{Encoded: string(written)}).Definition()
		if err != nil || len(again.Structs) != len(definition.Structs) {
			t.Fatalf("%v\n%v", definition, err)
		}
		for _, s := range definition.Structs {
			found, err := file.Struct(s.Name)
			if err != nil || found.Name != s.Name {
				t.Errorf("struct %q: %v", s.Name, err)
			}
			for i := range s.Fields {
				askType(t, file, &s.Fields[i].Type)
			}
		}
		for i := range definition.Typedefs {
			askType(t, file, &definition.Typedefs[i].Type)
		}
		for i := range definition.Services {
			service := &definition.Services[i]
			if method, declaring, err := file.Method(service, "ping"); err == nil && (method.Name != "ping" || declaring == nil) {
				t.Errorf("method %v of %v", method, declaring)
			}
		}
	})
}

func askType(t *testing.T, file *descriptor.File, asked *descriptor.Type) {
	if s, declaring, err := file.StructOf(asked); err == nil && (s.Name != asked.Name || declaring == nil) {
		t.Errorf("struct %v of %v", s, asked)
	}
	if enum, err := file.EnumOf(asked); err == nil && enum.Name != asked.Name {
		t.Errorf("enum %v of %v", enum, asked)
	}
	for _, part := range []*descriptor.Type{asked.Key, asked.Element} {
		if part != nil {
			askType(t, file, part)
		}
	}
}
