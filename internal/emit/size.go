package emit

import (
	"math"
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// checkSizes reports structs that become too long, or too deep, because they hold others
// by value. Of those that are too deep the innermost: what holds it is as well.
func (g *generator) checkSizes() {
	for _, file := range g.program.Files {
		for _, s := range file.Structs {
			if g.valueDepth(s) == limits.Depth+1 {
				g.errorf(s.Position, "%s %s: nests %d deep with the structs in its fields, and no message may (limit %d); make some of the fields optional",
					s.Category, s.Name, limits.Depth+1, limits.Depth)
			}
			if size := g.structSize(s); size > limits.GoStructBytes && !g.holdsTooLong(s) {
				g.errorf(s.Position, "%s %s: takes about %d bytes in Go with the structs in its fields (limit %d); make some of the fields optional",
					s.Category, s.Name, size, limits.GoStructBytes)
			}
		}
	}
}

// checkDefaults reports structs, and arguments, whose defaults take more memory than
// decoding a message may.
func (g *generator) checkDefaults() {
	for _, file := range g.program.Files {
		for _, s := range file.Structs {
			g.checkStructDefaults(s)
		}
		for _, service := range file.Services {
			for _, method := range service.Methods {
				g.checkArgumentDefaults(method)
			}
		}
	}
}

func (g *generator) checkStructDefaults(s *schema.Struct) {
	n := g.defaultBytes(s)
	switch {
	case n > limits.GoDefaultBytes && !g.holdsLongDefaults(s, n, limits.GoDefaultBytes):
		g.errorf(s.Position, "%s %s: its defaults take about %d bytes in Go with those of the structs in them (limit %d); leave some of them out",
			s.Category, s.Name, n, limits.GoDefaultBytes)
	case n > limits.DecodeBytesBase && n <= limits.GoDefaultBytes && !g.holdsLongDefaults(s, n, limits.DecodeBytesBase):
		g.warningf(s.Position, "%s %s: its defaults take about %d bytes in Go: messages of less than %d bytes that have one in a field, list or map cannot be decoded (%d bytes, and %d for each byte of the message)",
			s.Category, s.Name, n, shortestMessage(n), limits.DecodeBytesBase, limits.DecodeBytesPerWireByte)
	}
}

// checkArgumentDefaults looks at what every request makes, and at what a request makes that
// lacks structs, where none of them alone is too long: that is said of the struct.
func (g *generator) checkArgumentDefaults(method *schema.Method) {
	own, all, longest := 0, 0, 0
	for _, argument := range method.Arguments {
		switch {
		case argument.Default != nil:
			own = sum(own, g.valueBytes(argument.Default))
		case argument.Type.Kind == schema.KindStruct:
			n := g.defaultBytes(argument.Type.Struct)
			all, longest = sum(all, n), max(longest, n)
		}
	}
	all = sum(all, own)
	switch {
	case own > limits.DecodeBytesBase:
		g.errorf(method.Position, "method %s: the defaults of its arguments take about %d bytes in Go, which every request makes (limit %d); leave some of them out",
			method.Name, own, limits.DecodeBytesBase)
	case all > limits.DecodeBytesBase && longest <= limits.DecodeBytesBase:
		g.warningf(method.Position, "method %s: the defaults of the structs in its arguments take about %d bytes in Go: requests of less than %d bytes cannot be decoded (%d bytes, and %d for each byte of the message)",
			method.Name, all, shortestMessage(all), limits.DecodeBytesBase, limits.DecodeBytesPerWireByte)
	}
}

// shortestMessage returns how long a message must be that may take n bytes.
func shortestMessage(n int) int {
	return (n - limits.DecodeBytesBase + limits.DecodeBytesPerWireByte - 1) / limits.DecodeBytesPerWireByte
}

// holdsLongDefaults says that a struct in s, whose defaults take n bytes, or in its
// defaults, is to blame for more than most. That one's take less, unless nobody counted so
// far: two structs can be in defaults of each other.
func (g *generator) holdsLongDefaults(s *schema.Struct, n, most int) bool {
	toBlame := func(inner *schema.Struct) bool {
		bytes := g.defaultBytes(inner)
		return bytes > most && (bytes < n || n == memoryMost && inner != s)
	}
	for _, field := range s.Fields {
		if field.Default != nil && holdsStruct(field.Default, toBlame) || g.isValueStruct(field) && toBlame(field.Type.Struct) {
			return true
		}
	}
	return false
}

// holdsStruct says that a value is of such a struct, or has one in it.
func holdsStruct(v *schema.Value, such func(*schema.Struct) bool) bool {
	inner := func(v *schema.Value) bool { return holdsStruct(v, such) }
	return v.Kind == schema.ValueStruct && such(v.Type.Struct) ||
		slices.ContainsFunc(v.List, inner) ||
		slices.ContainsFunc(v.Entries, func(entry schema.ValueEntry) bool { return inner(entry.Key) || inner(entry.Value) }) ||
		slices.ContainsFunc(v.Fields, func(field schema.ValueField) bool { return inner(field.Value) })
}

// pointerBytes is how many bytes a pointer takes.
const pointerBytes = 8

// holdsTooLong says that one of the fields is to blame, not s itself.
func (g *generator) holdsTooLong(s *schema.Struct) bool {
	for _, field := range valueFields(s) {
		if !g.pointers[field] && g.sizes[field.Type.Struct] > limits.GoStructBytes {
			return true
		}
	}
	return false
}

// structSize returns how many bytes a struct takes in memory, without padding,
// and at least 1 because an empty struct is work for the compiler as well. It
// is remembered, and not added up further than it matters.
func (g *generator) structSize(s *schema.Struct) int {
	if size, known := g.sizes[s]; known {
		return size
	}
	size := 1
	if g.declaredRecord(s).unknown != "" {
		size += wireTypes[schema.KindString].goBytes
	}
	for _, m := range g.declaredRecord(s).members {
		switch {
		case m.form == formPointer:
			size += pointerBytes
		case m.Type.Kind == schema.KindStruct:
			size += g.structSize(m.Type.Struct)
		default:
			size += wireTypes[m.Type.Kind].goBytes
		}
	}
	// A long struct counts as little more than the limit, so that sums do not
	// overflow.
	g.sizes[s] = min(size, 2*limits.GoStructBytes)
	return g.sizes[s]
}

// valueDepth returns how deep structs nest in every value of a struct, itself included: what
// is there always is written always. It is remembered. The Go compiler, too, takes its time
// for such structs: 63 s for 400 of them within each other.
func (g *generator) valueDepth(s *schema.Struct) int {
	if depth, known := g.depths[s]; known {
		return depth
	}
	depth := 0
	for _, m := range g.declaredRecord(s).members {
		if m.form != formPointer && m.Type.Kind == schema.KindStruct {
			depth = max(depth, g.valueDepth(m.Type.Struct))
		}
	}
	g.depths[s] = depth + 1
	return depth + 1
}

// defaultBytes returns how much memory a constructor allocates beside the struct, about:
// 0 if it has no defaults that take memory of their own.
func (g *generator) defaultBytes(s *schema.Struct) int {
	if n, known := g.defaultMemory[s]; known {
		return n
	}
	n := 0
	for _, field := range s.Fields {
		n = sum(n, g.fieldDefaultBytes(s, field))
	}
	if n > 0 && !g.options.Kitex { // where InitDefault fills the one that there is
		n = sum(n, g.structSize(s)) // the constructor returns one, which is copied
	}
	g.defaultMemory[s] = n
	return n
}

// memoryMost is what more memory counts as: with room for sums, and far more than is allowed.
const memoryMost = math.MaxInt / 4

func sum(a, b int) int { return min(a+b, memoryMost) }

func product(a, b int) int { return int(min(int64(a)*int64(b), memoryMost)) }

// fieldDefaultBytes is what one field of a new struct adds to that.
func (g *generator) fieldDefaultBytes(s *schema.Struct, field *schema.Field) int {
	if n, known := g.fieldDefaults[field]; known {
		return n
	}
	n := 0
	switch {
	case isOptional(s, field) && !g.options.Kitex:
	case field.Default != nil && isMapSet(field) && !g.options.Kitex:
		set := &schema.Type{Kind: schema.KindMap, Key: field.Type.Element, Element: &schema.Type{Kind: schema.KindBool}}
		n = g.mapBytes(set, len(field.Default.List))
	case field.Default != nil:
		n = g.valueBytes(field.Default)
	case g.isValueStruct(field):
		n = g.defaultBytes(field.Type.Struct)
	}
	g.fieldDefaults[field] = n
	return n
}

// valueBytes returns how much memory a value takes beside itself, about.
func (g *generator) valueBytes(v *schema.Value) int {
	n := 0
	switch v.Kind {
	case schema.ValueString:
		if v.Type.Kind == schema.KindBinary {
			n = len(v.String)
		}
	case schema.ValueList:
		n = product(len(v.List), g.goBytes(v.Type.Element))
		for _, element := range v.List {
			n = sum(n, g.valueBytes(element))
		}
	case schema.ValueMap:
		n = g.mapBytes(v.Type, len(v.Entries))
		for _, entry := range v.Entries {
			n = sum(n, sum(g.valueBytes(entry.Key), g.valueBytes(entry.Value)))
			if entry.Value.Kind == schema.ValueStruct && !g.options.Kitex { // see below
				n = sum(n, g.structSize(entry.Value.Type.Struct))
			}
		}
	case schema.ValueStruct:
		n = g.structValueBytes(v)
		if g.options.Kitex { // where all are behind pointers
			n = sum(n, g.structSize(v.Type.Struct))
		}
	}
	return n
}

func (g *generator) structValueBytes(v *schema.Value) int {
	n := 0
	given := map[*schema.Field]bool{}
	for _, f := range v.Fields {
		given[f.Field] = true
		n = sum(n, g.valueBytes(f.Value)+g.goBytes(f.Field.Type)) // which may be behind a pointer
	}
	if g.options.Kitex {
		return n // there fields that are not given are zero; see kitexStructValue
	}
	for _, field := range v.Type.Struct.Fields {
		if !given[field] {
			n = sum(n, g.fieldDefaultBytes(v.Type.Struct, field))
		}
	}
	return n
}

// mapBytes returns how much memory a map of n entries takes, as package thrift has it, or
// a slice of pairs, without the structs that its values point to.
func (g *generator) mapBytes(t *schema.Type, n int) int {
	slot := g.goBytes(t.Key) + pointerBytes
	if t.Element.Kind != schema.KindStruct {
		slot = g.goBytes(t.Key) + g.goBytes(t.Element)
	}
	if g.isPairs(t) {
		return product(n, slot)
	}
	const header, groupSlots = 64, 8
	return sum(header, product(5*max(groupSlots, (16*n+6)/7)/4, slot+1))
}

// goBytes returns how many bytes a value takes in memory, without what it refers to.
func (g *generator) goBytes(t *schema.Type) int {
	switch {
	case t.Kind != schema.KindStruct:
		return wireTypes[t.Kind].goBytes
	case g.options.Kitex:
		return pointerBytes
	default:
		return g.structSize(t.Struct)
	}
}
