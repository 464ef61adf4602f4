package emit

import "github.com/fulmar-rpc/fulmar/gen/schema"

// viewNames are the identifiers of the view of a struct.
type viewNames struct {
	// goName is the type, constructor the function NewXView, shape the variable with what
	// the runtime has to know.
	goName, constructor, shape string
	fields                     map[*schema.Field]viewMethods
}

// viewMethods are the methods for a field; "" for those that it does not have.
type viewMethods struct {
	get, set, has, clear, setAt                string
	appendOne, removeAt, setEntry, deleteEntry string
	// edit, editAt and editEntry change what is within structs.
	edit, editAt, editEntry string
}

// viewedStructs finds the structs that get views: all, or those that are annotated, those
// that methods in view form take and return, and what is in them.
func (g *generator) viewedStructs() map[*schema.Struct]bool {
	viewed := map[*schema.Struct]bool{}
	if g.options.Kitex {
		return viewed
	}
	var queue []*schema.Struct
	for _, file := range g.program.Files {
		for _, s := range file.Structs {
			if g.options.Views || findAnnotation(s.Annotations, annotationView) != nil {
				queue = append(queue, s)
			}
		}
		for _, service := range file.Services {
			queue = append(queue, g.structsInViewForm(service)...)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if viewed[s] {
			continue
		}
		viewed[s] = true
		for _, field := range s.Fields {
			queue = structsWithin(queue, field.Type)
		}
	}
	return viewed
}

// nameViews names the views of a package, after everything that a definition names.
func (g *generator) nameViews(n *names, pkg *schema.Package) {
	scope := n.scopes[pkg]
	for _, file := range pkg.Files {
		for _, s := range file.Structs {
			if !g.viewed[s] {
				continue
			}
			view := &viewNames{goName: scope.claim(s.GoName + "View"), fields: map[*schema.Field]viewMethods{}}
			view.constructor = scope.claim("New" + view.goName)
			view.shape = scope.claim(unexported(view.goName) + "Shape")
			n.views[s] = view
			nameViewMethods(view, s)
		}
	}
}

// nameViewMethods names the methods for fields. Those that return them have the first
// choice: they are called what the fields of the struct are.
func nameViewMethods(view *viewNames, s *schema.Struct) {
	methods := newNamespace(structMethods...)
	methods.reserve("Load", "LoadUntil", "Struct", "AppendTo", "AppendPieces", "BindThrift", "ForgetThrift", "ViewShape", "Error")
	for _, field := range s.Fields {
		view.fields[field] = viewMethods{get: methods.claim(field.GoName)}
	}
	for _, field := range s.Fields {
		m := view.fields[field]
		m.set = methods.claim("Set" + field.GoName)
		if field.Requiredness != schema.RequirednessRequired || s.Category == schema.CategoryUnion {
			m.has, m.clear = methods.claim("Has"+field.GoName), methods.claim("Clear"+field.GoName)
		}
		if hasSettableElements(field.Type) && fieldTypeOf(field) == nil {
			m.setAt = methods.claim("Set" + field.GoName + "At")
		}
		view.fields[field] = m
	}
	for _, field := range s.Fields { // last, so that others keep the names that they had
		m := view.fields[field]
		if m.setAt != "" {
			m.appendOne, m.removeAt = methods.claim("Append"+field.GoName), methods.claim("Remove"+field.GoName+"At")
		}
		if hasSettableEntries(field.Type) {
			m.setEntry, m.deleteEntry = methods.claim("Set"+field.GoName+"Entry"), methods.claim("Delete"+field.GoName+"Entry")
		}
		view.fields[field] = m
	}
	for _, field := range s.Fields { // behind those as well
		m := view.fields[field]
		switch {
		case field.Type.Kind == schema.KindStruct:
			m.edit = methods.claim("Edit" + field.GoName)
		case m.setAt != "" && field.Type.Element.Kind == schema.KindStruct:
			m.editAt = methods.claim("Edit" + field.GoName + "At")
		case m.setEntry != "" && field.Type.Element.Kind == schema.KindStruct:
			m.editEntry = methods.claim("Edit" + field.GoName + "Entry")
		}
		view.fields[field] = m
	}
}

// hasSettableElements says that elements of a list can be changed one by one.
func hasSettableElements(t *schema.Type) bool {
	return (t.Kind == schema.KindList || t.Kind == schema.KindSet) && !isContainer(t.Element)
}

// hasSettableEntries says that entries of a map can be changed one by one: equal keys are
// the same bytes.
func hasSettableEntries(t *schema.Type) bool {
	if t.Kind != schema.KindMap || isContainer(t.Element) {
		return false
	}
	switch t.Key.Kind {
	case schema.KindString, schema.KindBinary, schema.KindI8, schema.KindI16, schema.KindI32, schema.KindI64, schema.KindEnum:
		return true
	default:
		return false
	}
}
