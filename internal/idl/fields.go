package idl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
)

// fieldList is the place that fields are in: a struct, the arguments or the
// exceptions of a method.
type fieldList struct {
	unit *unit
	what string // for messages: "struct Order"
	// result says that the fields share their numbers with a method's result,
	// which has id 0.
	result bool
	// partial says that there are more fields, which could not be read.
	partial bool
	byName  map[string]*schema.Field
	byID    map[int16]*schema.Field
	// next is what a field without an id would get, and written has the ids
	// that the definition gives, the largest of which is idMax.
	next    implicitIDs
	written map[int64]bool
	idMax   int64
	// numbered are the fields that got theirs so, for the warning about it.
	numbered []numberedField
}

// implicitIDs are the ids that other compilers would give to a field.
type implicitIDs struct{ apache, thriftgo int64 }

// after returns the ids of the field behind one with this id, or without one.
// Apache Thrift goes on below an id that is not positive, when it is told to
// allow such ids; other ids do not matter to it.
func (i implicitIDs) after(node *ast.Field) implicitIDs {
	switch {
	case !node.HasID:
		return implicitIDs{apache: i.apache - 1, thriftgo: i.thriftgo + 1}
	case node.ID > math.MaxInt16 || node.ID < math.MinInt16:
		return i // refused
	case node.ID <= 0:
		i.apache = node.ID - 1
	}
	i.thriftgo = node.ID + 1
	return i
}

type numberedField struct {
	id    int16
	field *schema.Field
}

func (r *resolver) resolveFields(list *fieldList, nodes []ast.Field) []*schema.Field {
	if len(nodes) == 0 {
		return nil
	}
	list.byName = make(map[string]*schema.Field, len(nodes))
	list.byID = make(map[int16]*schema.Field, len(nodes))
	list.next = implicitIDs{apache: -1, thriftgo: 1}
	if r.options.ImplicitIDs == ImplicitIDsRefused {
		list.noteWritten(nodes)
	}
	fields := make([]*schema.Field, 0, len(nodes))
	for i := range nodes {
		if r.exhausted() {
			break
		}
		fields = append(fields, r.resolveField(list, &nodes[i]))
		list.next = list.next.after(&nodes[i])
	}
	r.warnOfNumbers(list)
	return fields
}

// noteWritten fills what advice about missing ids needs.
func (l *fieldList) noteWritten(nodes []ast.Field) {
	if !slices.ContainsFunc(nodes, func(node ast.Field) bool { return !node.HasID }) {
		return
	}
	l.written = make(map[int64]bool, len(nodes))
	for i := range nodes {
		if nodes[i].HasID {
			l.written[nodes[i].ID] = true
			l.idMax = max(l.idMax, nodes[i].ID)
		}
	}
}

func (r *resolver) resolveField(list *fieldList, node *ast.Field) *schema.Field {
	u := list.unit
	field := &schema.Field{
		Name: node.Name.Text, Doc: node.Doc, Requiredness: node.Requiredness,
		Annotations: r.annotations(u, node.Annotations), Position: u.at(node.Name.Place),
	}
	field.Type, _ = r.typeOf(u, node.Type, 0)
	if first := list.byName[field.Name]; first != nil {
		r.found.errorf(field.Position, "%s: field name %s is taken at %s", list.what, field.Name, first.Position)
	} else {
		list.byName[field.Name] = field
	}
	position, ok := u.at(node.IDPlace), false
	if node.HasID {
		field.ID, ok = r.explicitID(list, node)
	} else {
		position = field.Position
		field.ID, ok = r.implicitID(list, field)
	}
	if first := list.byID[field.ID]; ok && first != nil {
		r.found.errorf(position, "%s: field id %d is taken by %s at %s", list.what, field.ID, first.Name, first.Position)
	} else if ok {
		list.byID[field.ID] = field
	}
	if node.Default != nil {
		r.defaults = append(r.defaults, pendingDefault{unit: u, field: field, node: node.Default})
	}
	return field
}

// explicitID returns the id that the definition gives, if it can be used.
func (r *resolver) explicitID(list *fieldList, node *ast.Field) (id int16, ok bool) {
	name, position := node.Name.Text, list.unit.at(node.IDPlace)
	switch {
	case node.ID > math.MaxInt16 || node.ID < math.MinInt16:
		r.found.errorf(position, "%s: id of field %s does not fit i16 (got %d), expected 1 to %d", list.what, name, node.ID, math.MaxInt16)
	case node.ID == 0 && list.result:
		r.found.errorf(position, "%s: id of field %s is 0, which is the id of the result", list.what, name)
	case node.ID <= 0 && !r.options.AllowNegativeIDs:
		r.found.errorf(position, "%s: id of field %s is not positive (got %d), expected 1 to %d; definitions that need it can be loaded with --allow-negative-ids", list.what, name, node.ID, math.MaxInt16)
	default:
		return int16(node.ID), true
	}
	return 0, false
}

// implicitID returns the id of a field to which the definition gives none, if
// the user has said how.
func (r *resolver) implicitID(list *fieldList, field *schema.Field) (id int16, ok bool) {
	number := list.next.apache
	if r.options.ImplicitIDs == ImplicitIDsThriftgo {
		number = list.next.thriftgo
	}
	switch {
	case list.partial:
		// What it would be depends on fields that could not be read.
		r.found.errorf(field.Position, "%s: field %s has no id", list.what, field.Name)
	case r.options.ImplicitIDs == ImplicitIDsRefused:
		r.found.errorf(field.Position, "%s: field %s has no id, expected %s in front of it, or --implicit-ids=thriftgo or apache for all fields", list.what, field.Name, list.advice())
	case number > math.MaxInt16 || number < math.MinInt16:
		r.found.errorf(field.Position, "%s: field %s has no id, and the next one does not fit i16 (got %d)", list.what, field.Name, number)
	case number == 0 && list.result:
		r.found.errorf(field.Position, "%s: field %s has no id, and the next one is 0, which is the id of the result", list.what, field.Name)
	default:
		list.numbered = append(list.numbered, numberedField{id: int16(number), field: field})
		return int16(number), true
	}
	return 0, false
}

// advice names the ids that a field may be meant to have.
func (l *fieldList) advice() string {
	apache := fmt.Sprintf(`"%d:" as Apache Thrift counts`, l.next.apache)
	switch kitex := l.next.thriftgo; {
	case kitex <= math.MaxInt16 && !l.written[kitex]:
		return fmt.Sprintf(`"%d:" as Kitex counts or %s`, kitex, apache)
	case l.idMax < math.MaxInt16:
		l.idMax++
		return fmt.Sprintf(`"%d:", which is free, or %s`, l.idMax, apache)
	default:
		return apache
	}
}

// warnOfNumbers shows which ids fields got, for the author to write them down.
func (r *resolver) warnOfNumbers(list *fieldList) {
	const shown = 5
	if len(list.numbered) == 0 {
		return
	}
	names := make([]string, 0, shown)
	for _, one := range list.numbered[:min(len(list.numbered), shown)] {
		names = append(names, fmt.Sprintf("%d: %s", one.id, clip(one.field.Name)))
	}
	if rest := len(list.numbered) - shown; rest > 0 {
		names = append(names, fmt.Sprintf("%d more", rest))
	}
	r.found.warningf(list.numbered[0].field.Position, "%s: fields without an id are numbered (%s); write the ids down, because the next change could move them", list.what, strings.Join(names, ", "))
}
