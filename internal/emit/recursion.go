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
	cycles := findCycles(structs)
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

// findCycles gives the same number to structs that contain each other: Tarjan's
// strongly connected components.
func findCycles(structs []*schema.Struct) map[*schema.Struct]int {
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
		for _, field := range valueFields(s) {
			inner := field.Type.Struct
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
