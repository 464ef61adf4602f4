package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"capnproto.org/go/capnp/v3"
	"capnproto.org/go/capnp/v3/std/capnp/schema"
	gocp "capnproto.org/go/capnp/v3/std/go"
)

// Numbers by which the nodes of a schema are told apart.
const (
	capnpFile   = 0xb1d5b1a4f0c97a01
	capnpMyTest = 0xb1d5b1a4f0c97a02
	capnpAno    = 0xb1d5b1a4f0c97a03
)

// capnProto makes the struct MyTest for Cap'n Proto. Its compiler is a C++
// program that no package registry has. It parses, lays out the structs, and
// hands capnpc-go a message that describes them, which is built here in its
// place: what it would make of
//
//	struct MyTest {
//	  num @0 :Int64;
//	  ano @1 :Ano;
//	  nums @2 :List(Int64);
//	}
//	struct Ano {
//	  num @0 :Int64;
//	}
func capnProto(ctx context.Context, output string) error {
	message, segment, err := capnp.NewMessage(capnp.SingleSegment(nil))
	if err != nil {
		return err
	}
	request, err := schema.NewRootCodeGeneratorRequest(segment)
	if err != nil {
		return err
	}
	files, err := request.NewRequestedFiles(1)
	if err != nil {
		return err
	}
	// capnpc-go writes the file of that name with ".go" behind it.
	files.At(0).SetId(capnpFile)
	if err := files.At(0).SetFilename(filepath.Join(output, "codec.capnp")); err != nil {
		return err
	}
	nodes, err := request.NewNodes(3)
	if err != nil {
		return err
	}
	err = errors.Join(
		describeFile(nodes.At(0)),
		describeStruct(nodes.At(1), "MyTest", capnpMyTest, 1, 2,
			capnpField{"num", 0, number}, capnpField{"ano", 0, ano}, capnpField{"nums", 1, listOfNumbers}),
		describeStruct(nodes.At(2), "Ano", capnpAno, 1, 0, capnpField{"num", 0, number}),
	)
	if err != nil {
		return err
	}
	described, err := message.Marshal()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(output, 0o777); err != nil {
		return err
	}
	_, err = pipe(ctx, described, "capnpc-go", "-promises=false", "-schemas=false", "-structstrings=false")
	return err
}

// describeFile says in which Go package the structs are.
func describeFile(node schema.Node) error {
	node.SetId(capnpFile)
	node.SetFile()
	annotations, err := node.NewAnnotations(2)
	if err != nil {
		return err
	}
	for i, a := range []struct {
		id   uint64
		text string
	}{{gocp.Package, "messages"}, {gocp.Import, prefix + "/capnp"}} {
		annotations.At(i).SetId(a.id)
		value, err := annotations.At(i).NewValue()
		if err := errors.Join(err, value.SetText(a.text)); err != nil {
			return err
		}
	}
	nested, err := node.NewNestedNodes(2)
	if err != nil {
		return err
	}
	nested.At(0).SetId(capnpMyTest)
	nested.At(1).SetId(capnpAno)
	return errors.Join(node.SetDisplayName("codec.capnp"), nested.At(0).SetName("MyTest"), nested.At(1).SetName("Ano"))
}

// capnpField is a field of a struct. offset counts what is before it in the
// struct's numbers or pointers, in units of its own size.
type capnpField struct {
	name   string
	offset uint32
	setTo  func(schema.Type, schema.Value) error
}

func number(t schema.Type, defaults schema.Value) error {
	t.SetInt64()
	defaults.SetInt64(0)
	return nil
}

func ano(t schema.Type, defaults schema.Value) error {
	t.SetStructType()
	t.StructType().SetTypeId(capnpAno)
	return defaults.SetStructValue(capnp.Ptr{})
}

func listOfNumbers(t schema.Type, defaults schema.Value) error {
	t.SetList()
	element, err := t.List().NewElementType()
	if err != nil {
		return err
	}
	element.SetInt64()
	return defaults.SetList(capnp.Ptr{})
}

// describeStruct describes a struct with so many words of numbers and so many
// pointers.
func describeStruct(node schema.Node, name string, id uint64, words, pointers uint16, fields ...capnpField) error {
	node.SetId(id)
	node.SetScopeId(capnpFile)
	node.SetStructNode()
	node.StructNode().SetDataWordCount(words)
	node.StructNode().SetPointerCount(pointers)
	node.StructNode().SetPreferredListEncoding(schema.ElementSize_inlineComposite)
	described, err := node.StructNode().NewFields(int32(len(fields)))
	if err != nil {
		return err
	}
	for i, f := range fields {
		field := described.At(i)
		field.SetCodeOrder(uint16(i))
		field.SetSlot()
		field.Slot().SetOffset(f.offset)
		field.Ordinal().SetExplicit(uint16(i))
		t, err := field.Slot().NewType()
		if err != nil {
			return err
		}
		defaults, err := field.Slot().NewDefaultValue()
		if err := errors.Join(err, field.SetName(f.name), f.setTo(t, defaults)); err != nil {
			return err
		}
	}
	return node.SetDisplayName(name)
}
