// Package ast is the form in which an interface definition leaves the parser:
// what one file says, with no name looked up and nothing checked that needs
// more than the grammar.
//
// Nodes are kept small (positions of eight bytes, values instead of pointers in
// lists), because the memory for hostile input is proportional to them.
package ast

import "github.com/fulmar-rpc/fulmar/gen/schema"

// Place is a place in the file that the node belongs to. Both members count from
// 1; Column counts bytes.
type Place struct{ Line, Column int32 }

// Name is an identifier and where it stands. It may contain dots where a
// reference is meant.
type Name struct {
	Text  string
	Place Place
}

// File is one interface definition file.
type File struct {
	Doc          string
	Namespaces   []Namespace
	Includes     []Include
	Declarations []Declaration
	Gaps         Gaps
}

// Gaps is what a file may say where it could not be read. What seems to be
// missing may be there.
type Gaps struct {
	// Names may be declared there.
	Names map[string]bool
	// Headers says that an include or a namespace may be there.
	Headers bool
	// Anything says that any name may be declared there.
	Anything bool
}

// MayDeclare says that a name without dots may be declared where the file could
// not be read.
func (g *Gaps) MayDeclare(name string) bool { return g.Anything || g.Names[name] }

// Namespace is "namespace Language Value".
type Namespace struct {
	Language, Value Name
	Annotations     []Annotation
}

// Include is one include of another Thrift file; C++ includes are dropped.
type Include struct {
	Path  string
	Place Place
}

// Annotation is one key = "value" pair; the value of a bare key is "1".
type Annotation struct {
	Key   Name
	Value string
}

// Head is what everything with a name has.
type Head struct {
	Name        Name
	Doc         string
	Annotations []Annotation
	// Partial says that there are members that could not be read.
	Partial bool
}

// Declared returns the head itself; it makes the types that embed Head
// Declarations.
func (h *Head) Declared() *Head { return h }

// Declaration is a *Constant, *Typedef, *Enum, *Struct or *Service.
type Declaration interface{ Declared() *Head }

// Constant is "const Type Name = Value".
type Constant struct {
	Head
	Type  *Type
	Value *Value
}

// Typedef is "typedef Type Name", or a senum, which is a typedef of string.
type Typedef struct {
	Head
	Type *Type
}

// Enum is an enumeration.
type Enum struct {
	Head
	Values []EnumValue
}

// EnumValue is one name of an enumeration.
type EnumValue struct {
	Head
	// Number is valid if HasNumber is set; otherwise it follows from the
	// previous value.
	Number      int64
	HasNumber   bool
	NumberPlace Place
}

// Struct is a struct, union or exception.
type Struct struct {
	Head
	Category schema.Category
	Fields   []Field
}

// Field is a member of a struct, an argument or a declared exception.
type Field struct {
	Head
	// ID is valid if HasID is set.
	ID                int64
	HasID             bool
	IDPlace           Place
	Requiredness      schema.Requiredness
	RequirednessPlace Place
	Type              *Type
	// Default is nil if there is none.
	Default *Value
}

// Service is a set of methods.
type Service struct {
	Head
	// Extends has an empty Text if the service extends none.
	Extends Name
	Methods []Method
}

// Method is one procedure of a service.
type Method struct {
	Head
	Oneway bool
	// Result is nil for void.
	Result      *Type
	ResultPlace Place
	Arguments   []Field
	Throws      []Field
}

// Type is a use of a type. Name is a base type, "list", "set", "map" or a
// reference.
type Type struct {
	Name        string
	Place       Place
	Key         *Type // of a map
	Element     *Type // of a list or set; the value of a map
	Annotations []Annotation
}

// ValueKind says what a Value looks like in the file.
type ValueKind uint8

// The kinds of a Value. ValueName is an identifier, true and false included.
const (
	ValueInt ValueKind = iota
	ValueDouble
	ValueText
	ValueName
	ValueList
	ValueMap
)

// Value is a constant expression.
type Value struct {
	Kind  ValueKind
	Place Place
	// Text of a string, its escapes resolved, or of a name.
	Text   string
	Int    int64
	Double float64
	// Items of a list; of a map, keys and values in turn.
	Items []Value
}
