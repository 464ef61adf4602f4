package view

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// wideRequired is more than requiredSet has room for.
const wideRequired = 257

// wideView is a view of a struct of wideRequired required bools that may hold another one,
// as generated code has it.
type wideView struct {
	view  View
	slots [wideRequired + 1]Slot
}

var _ thrift.Struct = (*wideView)(nil)

func (v *wideView) ViewShape() *Shape {
	shape := &Shape{Name: "wide"}
	for id := range int16(wideRequired) {
		shape.Fields = append(shape.Fields, Field{Key: thrift.Key(thrift.Bool, id+1), Required: int(id) + 1})
		shape.Required = append(shape.Required, fmt.Sprint("f", id+1))
	}
	inner := &Type{Type: thrift.StructType, Struct: func() *Shape { return shape }}
	shape.Fields = append(shape.Fields, Field{Key: thrift.Key(thrift.StructType, wideRequired+1), Value: inner})
	return shape
}

func (v *wideView) ReadThrift(r *thrift.Reader, p int) int {
	return v.view.Read(r, p, v.slots[:], v.ViewShape())
}

func (v *wideView) WriteThrift(w *thrift.Writer, b []byte) []byte {
	return v.view.Write(w, b, v.slots[:], v.ViewShape())
}

// wide returns levels structs in each other, of which the innermost is without the last
// required field if incomplete.
func wide(levels int, incomplete bool) []byte {
	required := wideRequired
	if incomplete && levels == 1 {
		required--
	}
	var b []byte
	for id := range required {
		b = append(b, byte(thrift.Bool), byte((id+1)>>8), byte(id+1), 1)
	}
	if levels > 1 {
		b = append(b, byte(thrift.StructType), byte((wideRequired+1)>>8), byte((wideRequired+1)&0xff))
		b = append(b, wide(levels-1, incomplete)...)
	}
	return append(b, 0)
}

// TestShape_OfManyRequiredFields has more of them than there are bits, on every level
// that there can be. Whoever looks at each level twice does not come to an end.
func TestShape_OfManyRequiredFields(t *testing.T) {
	if wideRequired <= 64*len(requiredSet{}) {
		t.Fatal("there is room for all of them")
	}
	var v wideView
	if err := thrift.Unmarshal(wide(limits.Depth, false), &v); err != nil {
		t.Errorf("with all of them: %v", err)
	}
	err := thrift.Unmarshal(wide(limits.Depth, true), &v)
	if want := fmt.Sprint("required but absent: f", wideRequired); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestRequiredSet_IsCompleteWithAll(t *testing.T) {
	for n := range 64*len(requiredSet{}) + 1 {
		var set requiredSet
		for i := range n {
			if set.complete(n) {
				t.Fatalf("complete with %d of %d", i, n)
			}
			set.add(i + 1)
		}
		if set.add(0); !set.complete(n) {
			t.Fatalf("not complete with all %d", n)
		}
	}
}

// textsView is a view of a struct of a list of strings and a number.
type textsView struct {
	view  View
	slots [2]Slot
}

var _ thrift.Struct = (*textsView)(nil)

func (*textsView) ViewShape() *Shape {
	return &Shape{Name: "texts", Plain: true, Fields: []Field{
		{Key: thrift.Key(thrift.List, 1), Value: &Type{Type: thrift.List, Element: &Type{Type: thrift.String}}},
		{Key: thrift.Key(thrift.I32, 2)},
	}}
}

func (v *textsView) ReadThrift(r *thrift.Reader, p int) int {
	return v.view.Read(r, p, v.slots[:], v.ViewShape())
}

func (v *textsView) WriteThrift(w *thrift.Writer, b []byte) []byte {
	return v.view.Write(w, b, v.slots[:], v.ViewShape())
}

// TestWrite_LinksLongParts writes a view into a chain of buffers: what nobody touched and
// is long is not copied.
func TestWrite_LinksLongParts(t *testing.T) {
	message := []byte{byte(thrift.List), 0, 1, byte(thrift.String), 0, 0, 0, 3}
	for _, text := range []string{strings.Repeat("a", 100_000), "b", strings.Repeat("c", 10_000)} {
		message = append(binary.BigEndian.AppendUint32(message, uint32(len(text))), text...)
	}
	message = append(message, 0)
	var v textsView
	if err := v.view.Load(message, v.slots[:], v.ViewShape()); err != nil {
		t.Fatal(err)
	}
	v.view.SetTextAt(v.slots[:], v.ViewShape(), 0, 1, "changed")
	v.view.SetNumber(v.slots[:], v.ViewShape(), 1, 7)
	want, err := thrift.Marshal(&v)
	if err != nil || !bytes.Contains(want, []byte("changed")) {
		t.Fatal(err)
	}
	out := linkbuf.New(linkbuf.NewPool())
	defer out.Release()
	if err := thrift.Binary.AppendBody(out, &v, limits.DefaultMessage()); err != nil {
		t.Fatal(err)
	}
	pieces := out.Slices(nil)
	if got := bytes.Join(pieces, nil); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want those %d that Marshal returns", len(got), len(want))
	}
	for _, part := range [][]byte{message[8:100_012], message[100_017:]} {
		if !slices.ContainsFunc(pieces, func(piece []byte) bool {
			return len(piece) >= 10_000 && &piece[len(piece)-1] == &part[len(part)-1] || len(piece) >= 10_000 && &piece[0] == &part[0]
		}) {
			t.Errorf("a part of %d bytes was copied", len(part))
		}
	}
	tight := limits.DefaultMessage()
	tight.Bytes = 50_000
	short := linkbuf.New(linkbuf.NewPool())
	defer short.Release()
	if err := thrift.Binary.AppendBody(short, &v, tight); err == nil || !strings.Contains(err.Error(), "limit 50000") || short.Len() != 0 {
		t.Errorf("%v, and %d bytes are left", err, short.Len())
	}
}
