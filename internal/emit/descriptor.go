package emit

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// describes says that the code of a file has a descriptor: there is something that
// others could ask for.
func (g *generator) describes(source *schema.File) bool {
	return !g.options.NoDescriptors && source.Payload == schema.PayloadThrift &&
		len(source.Typedefs)+len(source.Enums)+len(source.Structs)+len(source.Services) > 0
}

// descriptor prints the variable that describes a file, and the methods that lead from
// structs to it. The variable has no initializer that runs, so that the linker drops it
// from programs that never ask.
func (p *printer) descriptor(source *schema.File) {
	if !p.describes(source) {
		return
	}
	name := p.names.descriptors[source]
	d := &description{printer: p, source: source}
	pieces := d.file()
	p.endDeclaration()
	var parts []string
	for len(pieces) > 0 && d.total > partOfDescriptor {
		part := p.names.scopes[p.pkg].claim(unexported(name) + strconv.Itoa(len(parts)+1))
		parts = append(parts, part)
		p.P()
		pieces = p.sum("const "+part+" = ", pieces, "")
		p.endDeclaration()
	}
	p.P()
	p.doc(sentence(name, " describes ", shownName(source), ": see package descriptor."))
	p.P("var ", name, " = ", p.imports.descriptor("File"), "{")
	if len(parts) > 0 {
		p.P("Encoded: ", strings.Join(parts, " +\n"), ",")
	} else {
		p.sum("Encoded: ", pieces, ",")
	}
	if len(d.imports) > 0 {
		p.P("Imports: []*", p.imports.descriptor("File"), "{")
		for _, imported := range d.imports {
			p.P("&", p.imports.generated(imported.Package, p.names.descriptors[imported]), ",")
		}
		p.P("},")
	}
	p.P("}")
	p.endDeclaration()
	for _, s := range source.Structs {
		p.P()
		p.doc("DescribeThrift returns where the struct is described, and its name there.")
		p.P("func (s *", s.GoName, ") DescribeThrift() (*", p.imports.descriptor("File"), ", string) {")
		p.P("return &", name, ", ", strconv.Quote(s.Name))
		p.P("}")
		p.endDeclaration()
	}
}

// sum prints pieces as texts that are added, up to partOfDescriptor bytes of them, between
// what is before and what is behind, and returns the rest.
func (p *printer) sum(before string, pieces [][]byte, behind string) (rest [][]byte) {
	size := 0
	for i, piece := range pieces {
		if size += len(piece); i+1 == len(pieces) || size+len(pieces[i+1]) > partOfDescriptor {
			p.P(before, quoteBytes(piece), behind)
			return pieces[i+1:]
		}
		p.P(before, quoteBytes(piece), " +")
		before = ""
	}
	return nil
}

// quoteBytes returns bytes as a Go string literal.
func quoteBytes(b []byte) string {
	size := len(`""`)
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			size += 2
		case c >= ' ' && c < 0x7f:
			size++
		default:
			size += 4
		}
	}
	quoted := append(make([]byte, 0, size), '"')
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			quoted = append(quoted, '\\', c)
		case c >= ' ' && c < 0x7f:
			quoted = append(quoted, c)
		default:
			quoted = append(quoted, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(append(quoted, '"'))
}

const hexDigits = "0123456789abcdef"

// description writes a descriptor.Definition in Thrift Binary, without fields that are
// zero: thrift/descriptor/descriptor.thrift has the numbers, and the tests of the
// folder roundtrip read all of it. It has a writer of its own because the generator
// shares no code with the runtime.
type description struct {
	*printer
	source *schema.File
	// imports are the files that types refer to.
	imports []*schema.File
	b       []byte
	pieces  [][]byte
	// total is how many bytes there are in pieces.
	total int
}

// The type codes that descriptors have.
const (
	codeBool   = 2
	codeI16    = 6
	codeI32    = 8
	codeString = 11
	codeStruct = 12
	codeMap    = 13
	codeList   = 15
)

// file returns the description of the file, in pieces for one declaration each or a
// kilobyte.
func (d *description) file() [][]byte {
	d.text(1, path.Base(d.source.Path))
	if spaces := d.source.Namespaces; len(spaces) > 0 {
		d.header(codeMap, 2)
		d.b = append(d.b, codeString, codeString)
		d.number(len(spaces))
		for _, language := range slices.Sorted(maps.Keys(spaces)) {
			d.string(language)
			d.string(spaces[language])
		}
	}
	describeList(d, 3, d.source.Typedefs, func(typedef *schema.Typedef) {
		d.text(1, typedef.Name)
		d.typeField(2, typedef.Type)
		d.annotations(3, typedef.Annotations)
	})
	describeList(d, 4, d.source.Enums, d.enum)
	describeList(d, 5, d.source.Structs, func(s *schema.Struct) {
		d.text(1, s.Name)
		d.i32(2, int(s.Category))
		d.fields(3, s.Fields)
		d.annotations(4, s.Annotations)
	})
	describeList(d, 6, d.source.Services, d.service)
	d.stop()
	d.endPiece(0)
	return d.pieces
}

// endPiece makes a piece of what there is if that has least bytes.
func (d *description) endPiece(least int) {
	if len(d.b) <= least {
		return
	}
	if d.total += len(d.b); d.total > limits.MessageBytes {
		d.tooLong()
	}
	d.pieces, d.b = append(d.pieces, d.b), nil
}

func (d *description) tooLong() {
	d.fail(fmt.Errorf("what describes the definition is too long (limit %d bytes); --no-descriptors leaves it out", limits.MessageBytes))
	d.pieces = nil
}

// describeList writes a list of structs, unless it is empty.
func describeList[T any](d *description, id int16, list []T, one func(T)) {
	if len(list) == 0 {
		return
	}
	d.header(codeList, id)
	d.b = append(d.b, codeStruct)
	d.number(len(list))
	for _, element := range list {
		one(element)
		d.stop()
		d.endPiece(pieceOfDescriptor)
	}
}

// pieceOfDescriptor is how many bytes go to a line of Go at least, partOfDescriptor how
// many to a declaration at most, if there is more than one piece. What is printed at once
// takes four characters each, and that several times.
const (
	pieceOfDescriptor = 1 << 10
	partOfDescriptor  = limits.GoDeclarationBytes / 32
)

func (d *description) enum(enum *schema.Enum) {
	d.text(1, enum.Name)
	describeList(d, 2, enum.Values, func(value *schema.EnumValue) {
		d.text(1, value.Name)
		d.i32(2, int(value.Number))
		d.annotations(3, value.Annotations)
	})
	d.annotations(3, enum.Annotations)
}

func (d *description) service(service *schema.Service) {
	d.text(1, service.Name)
	if parent := service.Extends; parent != nil {
		d.text(2, parent.Name)
		d.i32(3, d.reference(parent.File))
	}
	describeList(d, 4, service.Methods, func(method *schema.Method) {
		d.text(1, method.Name)
		if method.Oneway {
			d.header(codeBool, 2)
			d.b = append(d.b, 1)
		}
		d.typeField(3, method.Result)
		d.fields(4, method.Arguments)
		d.fields(5, method.Throws)
		d.annotations(6, method.Annotations)
	})
	d.annotations(5, service.Annotations)
}

func (d *description) fields(id int16, fields []*schema.Field) {
	describeList(d, id, fields, func(field *schema.Field) {
		if field.ID != 0 {
			d.header(codeI16, 1)
			d.b = binary.BigEndian.AppendUint16(d.b, uint16(field.ID))
		}
		d.text(2, field.Name)
		d.typeField(3, field.Type)
		d.i32(4, int(field.Requiredness))
		if field.Default != nil {
			d.header(codeString, 5)
			start := len(d.b)
			d.number(0)
			d.value(field.Default)
			binary.BigEndian.PutUint32(d.b[start:], uint32(len(d.b)-start-4))
		}
		d.annotations(6, field.Annotations)
	})
}

// describedKind is the number of descriptor.Kind, which has the order of schema.Kind.
func describedKind(kind schema.Kind) int { return int(kind) - int(schema.KindVoid) }

func (d *description) typeField(id int16, t *schema.Type) {
	if t == nil {
		return
	}
	d.header(codeStruct, id)
	d.i32(1, describedKind(t.Kind))
	switch t.Kind {
	case schema.KindMap:
		d.typeField(2, t.Key)
		d.typeField(3, t.Element)
	case schema.KindList, schema.KindSet:
		d.typeField(3, t.Element)
	case schema.KindEnum:
		d.text(4, t.Enum.Name)
		d.i32(5, d.reference(t.Enum.File))
	case schema.KindStruct:
		d.text(4, t.Struct.Name)
		d.i32(5, d.reference(t.Struct.File))
	}
	if typedef := t.Typedef; typedef != nil {
		name := typedef.Name
		if typedef.File != d.source {
			name = typedef.File.Base + "." + name
		}
		d.text(6, name)
	}
	d.annotations(7, t.Annotations)
	d.stop()
}

// reference returns the number of a file that something refers to.
func (d *description) reference(file *schema.File) int {
	if file == d.source {
		return 0
	}
	at := slices.Index(d.imports, file)
	if at < 0 {
		at = len(d.imports)
		d.imports = append(d.imports, file)
	}
	return at + 1
}

func (d *description) annotations(id int16, annotations schema.Annotations) {
	describeList(d, id, annotations, func(annotation schema.Annotation) {
		d.text(1, annotation.Key)
		d.text(2, annotation.Value)
	})
}

// value writes a default as its field would.
func (d *description) value(v *schema.Value) {
	if len(d.b) > limits.MessageBytes {
		d.tooLong() // a few values can name much text
	}
	if d.err != nil {
		return
	}
	switch v.Kind {
	case schema.ValueBool:
		d.b = append(d.b, boolByte(v.Bool))
	case schema.ValueInt, schema.ValueEnum:
		wide := binary.BigEndian.AppendUint64(nil, uint64(v.Int))
		d.b = append(d.b, wide[8-wireTypes[v.Type.Kind].wireBytes:]...)
	case schema.ValueDouble:
		d.b = binary.BigEndian.AppendUint64(d.b, math.Float64bits(v.Double))
	case schema.ValueString:
		if v.Type.Kind == schema.KindUUID {
			id, _ := hex.DecodeString(strings.ReplaceAll(v.String, "-", "")) // which was checked
			d.b = append(d.b, id...)
			return
		}
		d.string(v.String)
	case schema.ValueList:
		d.b = append(d.b, byte(wireTypes[v.Type.Element.Kind].code))
		d.number(len(v.List))
		for _, element := range v.List {
			d.value(element)
		}
	case schema.ValueMap:
		d.b = append(d.b, byte(wireTypes[v.Type.Key.Kind].code), byte(wireTypes[v.Type.Element.Kind].code))
		d.number(len(v.Entries))
		for _, entry := range v.Entries {
			d.value(entry.Key)
			d.value(entry.Value)
		}
	case schema.ValueStruct:
		for _, member := range v.Fields {
			d.header(byte(wireTypes[member.Field.Type.Kind].code), member.Field.ID)
			d.value(member.Value)
		}
		d.stop()
	}
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func (d *description) header(code byte, id int16) {
	d.b = binary.BigEndian.AppendUint16(append(d.b, code), uint16(id))
}

func (d *description) stop() { d.b = append(d.b, 0) }

func (d *description) number(n int) { d.b = binary.BigEndian.AppendUint32(d.b, uint32(n)) }

func (d *description) string(text string) {
	d.number(len(text))
	d.b = append(d.b, text...)
}

// text and i32 write fields, unless they hold nothing.
func (d *description) text(id int16, text string) {
	if text != "" {
		d.header(codeString, id)
		d.string(text)
	}
}

func (d *description) i32(id int16, n int) {
	if n != 0 {
		d.header(codeI32, id)
		d.number(n)
	}
}
