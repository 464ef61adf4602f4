package emit

import (
	"slices"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// closingFields finds the fields that have to be pointers because their structs
// would contain themselves by value. Among structs that contain each other
// those are the fields whose struct is declared earlier than, or is, the one
// that they are in. A struct that is required counts as declared later: its
// field cannot be left out, so another one of the cycle has to be.
func closingFields(program *schema.Program) map[*schema.Field]bool {
	var structs []*schema.Struct
	for _, file := range program.Files {
		structs = append(structs, file.Structs...)
	}
	ranks := requiredRanks(structs)
	cycles := findCycles(structs, valueStructs)
	closing := map[*schema.Field]bool{}
	for _, s := range structs {
		for _, field := range valueFields(s) {
			inner := field.Type.Struct
			if cycles[s] == cycles[inner] && ranks[inner] <= ranks[s] {
				closing[field] = true
			}
		}
	}
	return closing
}

// valueFields returns the fields that hold a struct by value if nothing speaks
// against it.
func valueFields(s *schema.Struct) []*schema.Field {
	var fields []*schema.Field
	for _, field := range s.Fields {
		if field.Type.Kind == schema.KindStruct && !isOptional(s, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

func valueStructs(s *schema.Struct) []*schema.Struct {
	var structs []*schema.Struct
	for _, field := range valueFields(s) {
		structs = append(structs, field.Type.Struct)
	}
	return structs
}

// requiredRanks numbers structs in the order of their declaration, except that
// a struct comes before those that it requires.
func requiredRanks(structs []*schema.Struct) map[*schema.Struct]int {
	ranks := make(map[*schema.Struct]int, len(structs))
	next := len(structs)
	var visit func(s *schema.Struct)
	visit = func(s *schema.Struct) {
		if _, visited := ranks[s]; visited {
			return
		}
		ranks[s] = 0
		for _, field := range valueFields(s) {
			if field.Requiredness == schema.RequirednessRequired {
				visit(field.Type.Struct)
			}
		}
		ranks[s] = next
		next--
	}
	for _, s := range slices.Backward(structs) {
		visit(s)
	}
	return ranks
}

// recursiveStructs finds the structs whose values can contain themselves, through
// pointers and containers as well, and gives the same number to those that contain
// each other, never 0. They are all in one file: files cannot include each other.
func recursiveStructs(program *schema.Program) map[*schema.Struct]int {
	var structs []*schema.Struct
	for _, file := range program.Files {
		structs = append(structs, file.Structs...)
	}
	inner := map[*schema.Struct][]*schema.Struct{}
	for _, s := range structs {
		for _, field := range s.Fields {
			inner[s] = structsWithin(inner[s], field.Type)
		}
	}
	cycles := findCycles(structs, func(s *schema.Struct) []*schema.Struct { return inner[s] })
	recursive := map[*schema.Struct]int{}
	for _, s := range structs {
		if slices.ContainsFunc(inner[s], func(other *schema.Struct) bool { return cycles[other] == cycles[s] }) {
			recursive[s] = cycles[s]
		}
	}
	return recursive
}

// structsWithin adds the structs that a type names to the list.
func structsWithin(list []*schema.Struct, t *schema.Type) []*schema.Struct {
	switch t.Kind {
	case schema.KindStruct:
		return append(list, t.Struct)
	case schema.KindList, schema.KindSet:
		return structsWithin(list, t.Element)
	case schema.KindMap:
		return structsWithin(structsWithin(list, t.Key), t.Element)
	}
	return list
}

// findCycles gives the same number to structs that contain each other, as contained
// says it: Tarjan's strongly connected components.
func findCycles(structs []*schema.Struct, contained func(*schema.Struct) []*schema.Struct) map[*schema.Struct]int {
	cycles := make(map[*schema.Struct]int, len(structs))
	// index is the order of visits; lowest is the earliest struct on the path
	// that a struct leads back to.
	index := make(map[*schema.Struct]int, len(structs))
	lowest := make(map[*schema.Struct]int, len(structs))
	var path []*schema.Struct
	var visit func(s *schema.Struct)
	visit = func(s *schema.Struct) {
		index[s] = len(index) + 1
		lowest[s] = index[s]
		path = append(path, s)
		for _, inner := range contained(s) {
			switch {
			case index[inner] == 0:
				visit(inner)
				lowest[s] = min(lowest[s], lowest[inner])
			case cycles[inner] == 0:
				lowest[s] = min(lowest[s], index[inner])
			}
		}
		if lowest[s] != index[s] {
			return
		}
		for done := false; !done; {
			last := path[len(path)-1]
			path = path[:len(path)-1]
			cycles[last] = index[s]
			done = last == s
		}
	}
	for _, s := range structs {
		if index[s] == 0 {
			visit(s)
		}
	}
	return cycles
}
