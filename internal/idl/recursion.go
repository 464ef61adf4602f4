package idl

import "github.com/fulmar-rpc/fulmar/gen/schema"

// checkRecursion warns of types of which no finite value can exist, and refuses
// defaults that would have to contain themselves. The former are of no use, but
// do no harm to the rest of a definition, and other compilers take them.
func (r *resolver) checkRecursion() {
	var structs []*schema.Struct
	for _, u := range r.units {
		structs = append(structs, u.file.Structs...)
	}
	r.checkCompletable(structs)
	r.checkDefaults(structs)
}

// checkCompletable reports structs that must contain themselves. A struct can
// be completed once all structs that it requires can; a union, once one of its
// fields can. What remains when nothing more follows from that is impossible.
func (r *resolver) checkCompletable(structs []*schema.Struct) {
	missing := make(map[*schema.Struct]int)
	requiredBy := make(map[*schema.Struct][]*schema.Struct)
	var complete []*schema.Struct
	for _, s := range structs {
		required := requirements(s)
		missing[s] = len(required)
		if s.Category == schema.CategoryUnion {
			missing[s] = min(1, len(required))
		}
		if missing[s] == 0 {
			complete = append(complete, s)
		}
		for _, field := range required {
			requiredBy[field.Type.Struct] = append(requiredBy[field.Type.Struct], s)
		}
	}
	for len(complete) > 0 {
		last := complete[len(complete)-1]
		complete = complete[:len(complete)-1]
		for _, s := range requiredBy[last] {
			if missing[s]--; missing[s] == 0 {
				complete = append(complete, s)
			}
		}
	}
	visited := make(map[*schema.Struct]bool)
	for _, s := range structs {
		if missing[s] > 0 && !visited[s] {
			r.reportIncompletable(s, missing, visited)
		}
	}
}

// requirements returns the fields whose structs are needed for a value of s: the
// required ones of a struct; of a union one of those returned, or none if
// another field is enough.
func requirements(s *schema.Struct) []*schema.Field {
	var required []*schema.Field
	for _, field := range s.Fields {
		isStruct := field.Type.Kind == schema.KindStruct
		switch {
		case s.Category == schema.CategoryUnion && !isStruct:
			return nil
		case s.Category == schema.CategoryUnion, isStruct && field.Requiredness == schema.RequirednessRequired:
			required = append(required, field)
		}
	}
	return required
}

// reportIncompletable follows requirements that cannot be met until they come
// back, which they must.
func (r *resolver) reportIncompletable(s *schema.Struct, missing map[*schema.Struct]int, visited map[*schema.Struct]bool) {
	at := make(map[*schema.Struct]int)
	var path []*schema.Field
	var names []string
	for !visited[s] {
		visited[s] = true
		at[s] = len(path)
		for _, field := range requirements(s) {
			if missing[field.Type.Struct] > 0 {
				path, names = append(path, field), append(names, s.Name)
				s = field.Type.Struct
				break
			}
		}
	}
	if first, onPath := at[s]; onPath {
		cycle := arrows(append(names[first:], s.Name))
		advice := "make one of these fields optional"
		if s.Category == schema.CategoryUnion {
			advice = "give the union a field of another type"
		}
		r.found.warningf(path[first].Position, "%s %s: required cycle: no value of it can ever be complete, because field %s needs another one (%s); %s",
			s.Category, s.Name, path[first].Name, cycle, advice)
	}
}

// checkDefaults reports defaults that contain a struct whose own defaults lead
// back to them: setting them would never end.
func (r *resolver) checkDefaults(structs []*schema.Struct) {
	component := make(map[*schema.Struct]int)
	for i, members := range components(structs, presetStructs) {
		for _, s := range members {
			component[s] = i
		}
	}
	for _, s := range structs {
		for _, field := range s.Fields {
			if field.Default == nil || field.Requiredness == schema.RequirednessOptional {
				continue
			}
			for _, inner := range literals(nil, field.Default) {
				if component[inner] == component[s] {
					r.found.errorf(field.Default.Position, "%s %s: default of field %s contains a value of %s, whose defaults lead back here without end", s.Category, s.Name, field.Name, inner.Name)
					break
				}
			}
		}
	}
}

// presetStructs returns the structs that exist as soon as s does.
func presetStructs(s *schema.Struct) []*schema.Struct {
	var list []*schema.Struct
	for _, field := range s.Fields {
		switch {
		case field.Requiredness == schema.RequirednessOptional:
		case field.Default != nil:
			list = literals(list, field.Default)
		case field.Type.Kind == schema.KindStruct:
			list = append(list, field.Type.Struct)
		}
	}
	return list
}

// literals appends the structs that a value contains.
func literals(list []*schema.Struct, value *schema.Value) []*schema.Struct {
	if value.Kind == schema.ValueStruct {
		list = append(list, value.Type.Struct)
	}
	for _, item := range value.List {
		list = literals(list, item)
	}
	for _, entry := range value.Entries {
		list = literals(literals(list, entry.Key), entry.Value)
	}
	for _, member := range value.Fields {
		list = literals(list, member.Value)
	}
	return list
}
