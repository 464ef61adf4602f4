package emit

import (
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// checkSizes reports structs that become too long because they hold others by
// value.
func (g *generator) checkSizes() {
	sizes := map[*schema.Struct]int{}
	for _, file := range g.program.Files {
		for _, s := range file.Structs {
			if size := g.structSize(s, sizes); size > limits.GoStructBytes && !g.holdsTooLong(s, sizes) {
				g.errorf(s.Position, "%s %s: takes about %d bytes in Go with the structs in its fields (limit %d); make some of the fields optional",
					s.Category, s.Name, size, limits.GoStructBytes)
			}
		}
	}
}

// holdsTooLong says that one of the fields is to blame, not s itself.
func (g *generator) holdsTooLong(s *schema.Struct, sizes map[*schema.Struct]int) bool {
	for _, field := range valueFields(s) {
		if !g.pointers[field] && sizes[field.Type.Struct] > limits.GoStructBytes {
			return true
		}
	}
	return false
}

// structSize returns how many bytes a struct takes in memory, without padding,
// and at least 1 because an empty struct is work for the compiler as well. It
// is remembered in sizes, and not added up further than it matters.
func (g *generator) structSize(s *schema.Struct, sizes map[*schema.Struct]int) int {
	if size, known := sizes[s]; known {
		return size
	}
	size := 1
	for _, m := range g.declaredRecord(s).members {
		switch {
		case m.form == formPointer:
			size += 8
		case m.Type.Kind == schema.KindStruct:
			size += g.structSize(m.Type.Struct, sizes)
		default:
			size += wireTypes[m.Type.Kind].goBytes
		}
	}
	// A long struct counts as little more than the limit, so that sums do not
	// overflow.
	sizes[s] = min(size, 2*limits.GoStructBytes)
	return sizes[s]
}
