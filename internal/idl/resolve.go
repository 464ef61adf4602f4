package idl

import (
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl/ast"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// resolver turns parsed files into a schema.Program.
type resolver struct {
	found   *collector
	options Options
	units   []*unit
	// nodes is how many types and values may still be written out.
	nodes int
	// renamed are the namespaces of Options.Namespaces that were met.
	renamed map[string]bool
	// resolving are the typedefs and constants whose meaning is being looked
	// up, outermost first: the path to show if one of them is met again.
	resolving []*symbol
	// enums, fields and methods find members by name.
	enums   map[*schema.Enum]*enumIndex
	fields  map[*schema.Struct]map[string]*schema.Field
	methods map[*schema.Service]map[string]*schema.Method
	// defaults wait until every struct is complete: a default may be a struct.
	defaults []pendingDefault
	// structKeyed are sets and maps with structs in their elements and keys, which are
	// compared when all defaults are known.
	structKeyed []*schema.Value
	// partial are the structs of which not all fields are known.
	partial map[*schema.Struct]bool
	// needed are the fields that a value of a struct must give: required ones
	// without a default.
	needed map[*schema.Struct][]*schema.Field
}

// pendingDefault is a default value that has not been resolved yet.
type pendingDefault struct {
	unit  *unit
	field *schema.Field
	node  *ast.Value
}

func resolve(units []*unit, options Options, found *collector) *schema.Program {
	r := &resolver{
		found:   found,
		options: options,
		units:   units,
		nodes:   limits.IDLNodes,
		renamed: make(map[string]bool),
		enums:   make(map[*schema.Enum]*enumIndex),
		fields:  make(map[*schema.Struct]map[string]*schema.Field),
		methods: make(map[*schema.Service]map[string]*schema.Method),
		partial: make(map[*schema.Struct]bool),
		needed:  make(map[*schema.Struct][]*schema.Field),
	}
	program := &schema.Program{}
	for _, u := range units {
		program.Files = append(program.Files, u.file)
	}
	packages := r.groupPackages()
	r.checkRenaming()
	r.declareNames()
	for _, step := range []func(){r.resolveTypes, r.resolveServices, r.resolveValues} {
		if step(); r.exhausted() {
			return nil
		}
	}
	if found.errors > 0 {
		return nil // what follows needs every member of the schema
	}
	r.checkRecursion()
	program.Packages = r.orderPackages(packages)
	return program
}

// spend pays for n types or values that have to be written out.
func (r *resolver) spend(n int, position schema.Position) {
	if r.nodes >= 0 && n > r.nodes {
		r.found.errorf(position, "too much in one run once typedefs and constants are written out (limit %d types, values, and parts of %d bytes of strings)", limits.IDLNodes, limits.IDLTextBytes)
	}
	r.nodes -= min(n, r.nodes+1)
}

// exhausted says that so much has to be written out that going on is pointless.
func (r *resolver) exhausted() bool { return r.nodes < 0 || r.found.full() }

func (r *resolver) annotations(u *unit, nodes []ast.Annotation) schema.Annotations {
	if len(nodes) == 0 {
		return nil
	}
	list := make(schema.Annotations, 0, len(nodes))
	for _, node := range nodes {
		list = append(list, schema.Annotation{Key: node.Key.Text, Value: node.Value, Position: u.at(node.Key.Place)})
	}
	return list
}
