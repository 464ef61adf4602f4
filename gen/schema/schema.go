// Package schema is the model that the generator works on: what an interface
// definition says once every name in it has been looked up.
//
// A front end (internal/idl for Thrift) builds a Program; passes may change it;
// emitters print Go from it. Plugins see the same model, so the types here are
// plain data without behaviour that depends on a front end. A finished Program
// is not written to any more and may be read by several goroutines.
package schema

import "fmt"

// Program is everything one run of the generator was asked for.
type Program struct {
	// Files holds every loaded file, includes before the files that include
	// them, each once.
	Files []*File
	// Packages groups the files by Go package, imported packages first.
	Packages []*Package
}

// Package is one Go package to generate. Several files with the same Go
// namespace share one.
type Package struct {
	// Name is the Go package name: a valid identifier, never a keyword.
	Name string
	// Path is the folder below the output directory, slash separated, made of
	// identifiers only ("orders", "acme/billing").
	Path string
	// Files in the order of Program.Files.
	Files []*File
	// Imports are the other packages whose types or constants this one names,
	// sorted by path.
	Imports []*Package
	// Root says that at least one of the files was named on the command line
	// rather than only included.
	Root bool
	// ImportPath is how Go code imports the package, empty if that is not
	// known, and GoImports are the packages that the code of this one may name,
	// sorted by name. Both are for plugins: see Import.
	ImportPath string
	GoImports  []Import
	// Declared are identifiers that the package has from elsewhere, sorted.
	Declared []string
}

// Payload is what messages of the methods of a file are encoded in.
type Payload uint8

// The payloads. Methods with PayloadProtobuf have one argument and a result, both of
// KindMessage, and names of services include the package.
const (
	PayloadThrift Payload = iota
	PayloadProtobuf
)

// File is one interface definition file.
type File struct {
	// Path as shown in messages: slash separated, relative to the include root
	// that it was found in. Generated code names its last element only.
	Path string
	// Base is the file name without folder and extension.
	Base string
	Doc  string
	// Namespaces maps a language ("go", "*", "py") to the declared namespace.
	Namespaces map[string]string
	Includes   []*File
	Package    *Package
	Payload    Payload

	Constants []*Constant
	Typedefs  []*Typedef
	Enums     []*Enum
	// Structs holds structs, unions and exceptions in order of declaration.
	Structs  []*Struct
	Services []*Service
}

// Position is a place in a file. Line and Column count from 1; Column counts
// bytes. The position of something with a name is that of the name. File is how
// the user can open the file, which may differ from File.Path.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns "file:line:column".
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Annotation is one key = "value" pair in parentheses behind a declaration. A
// bare annotation has the value "1".
type Annotation struct {
	Key      string
	Value    string
	Position Position
}

// Annotations keeps the order of the file; a key may occur more than once.
type Annotations []Annotation

// Get returns the last value of key.
func (a Annotations) Get(key string) (value string, found bool) {
	for i := range a {
		if a[i].Key == key {
			value, found = a[i].Value, true
		}
	}
	return value, found
}

// Kind is the kind of a Type.
type Kind uint8

// The kinds. Typedefs have the kind of what they stand for.
const (
	KindInvalid Kind = iota
	KindVoid         // only as the result of a method
	KindBool
	KindI8
	KindI16
	KindI32
	KindI64
	KindDouble
	KindString
	KindBinary
	KindUUID
	KindEnum
	KindStruct // struct, union or exception: see Struct.Category
	KindList
	KindSet
	KindMap
	// KindMessage is a message in Protobuf, whose Go type others make: only what methods
	// take and return, in files with PayloadProtobuf.
	KindMessage
)

var kindNames = [...]string{
	"invalid", "void", "bool", "i8", "i16", "i32", "i64", "double", "string",
	"binary", "uuid", "enum", "struct", "list", "set", "map", "message",
}

// String returns the name that the IDL uses.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// Type is a use of a type: in a field, a typedef, a constant or a method.
type Type struct {
	Kind Kind
	// Key is set for maps.
	Key *Type
	// Element is set for lists, sets and maps (the value).
	Element *Type
	// Enum is set for KindEnum, Struct for KindStruct.
	Enum   *Enum
	Struct *Struct
	// Message is set for KindMessage.
	Message *Message
	// Typedef is the name the file used, if it used one; the other members
	// then describe what it stands for, through any number of typedefs.
	Typedef     *Typedef
	Annotations Annotations
	Position    Position
}

// Message is a Go type for a message in Protobuf, that Go's official generator makes.
type Message struct {
	// Name is the full one, with the package of its definition.
	Name string
	// GoName is that of the type, GoImport the import path of its package, and GoPackage
	// the name of that.
	GoName    string
	GoImport  string
	GoPackage string
}

// Typedef gives a type another name.
type Typedef struct {
	Name        string
	Doc         string
	Type        *Type
	Annotations Annotations
	File        *File
	Position    Position
	// GoName is filled by the naming pass.
	GoName string
}

// Enum is a set of named 32-bit numbers. It is open: a peer may send others.
type Enum struct {
	Name        string
	Doc         string
	Values      []*EnumValue
	Annotations Annotations
	File        *File
	Position    Position
	GoName      string
	// GoParser is the function that turns a name into a value; for plugins.
	GoParser string
}

// EnumValue is one name in an Enum. Two names may share a number.
type EnumValue struct {
	Name        string
	Doc         string
	Number      int32
	Enum        *Enum
	Annotations Annotations
	Position    Position
	GoName      string
}

// Category tells structs, unions and exceptions apart; on the wire they are
// the same.
type Category uint8

// The categories of a Struct.
const (
	CategoryStruct Category = iota
	CategoryUnion
	CategoryException
)

// String returns the keyword of the IDL.
func (c Category) String() string {
	return [...]string{"struct", "union", "exception"}[c]
}

// Struct is a struct, a union or an exception.
type Struct struct {
	Name     string
	Doc      string
	Category Category
	// Fields in order of declaration.
	Fields      []*Field
	Annotations Annotations
	File        *File
	Position    Position
	GoName      string
	// GoConstructor is the function that returns a new one; for plugins.
	GoConstructor string
}

// Requiredness of a field. Fields of unions are always optional.
type Requiredness uint8

// RequirednessDefault is what a field has that says neither "required" nor
// "optional": always written, not insisted on when read.
const (
	RequirednessDefault Requiredness = iota
	RequirednessRequired
	RequirednessOptional
)

// String returns the keyword of the IDL, "default" for none.
func (r Requiredness) String() string {
	return [...]string{"default", "required", "optional"}[r]
}

// Field is a member of a struct, or an argument or declared exception of a
// method.
type Field struct {
	// ID is what identifies the field on the wire.
	ID           int16
	Name         string
	Doc          string
	Requiredness Requiredness
	Type         *Type
	// Default is nil if the file gives none. It fits Type.
	Default     *Value
	Annotations Annotations
	Position    Position
	GoName      string
	// GoType is the type of the Go field, and GoPresence how that shows that it
	// holds nothing. For plugins, and for members of structs only.
	GoType     string
	GoPresence Presence
}

// Constant is a named value.
type Constant struct {
	Name        string
	Doc         string
	Type        *Type
	Value       *Value
	Annotations Annotations
	File        *File
	Position    Position
	GoName      string
}

// ValueKind says which member of a Value holds it.
type ValueKind uint8

// The kinds of a Value after resolution against the type it is for.
const (
	ValueBool ValueKind = iota
	ValueInt
	ValueDouble
	ValueString // also binary, and uuid as 36 characters
	ValueEnum
	ValueList // also sets
	ValueMap
	ValueStruct
)

// Value is a constant or default, already checked against and converted to
// Type: an int literal for a double has become a ValueDouble and so on.
type Value struct {
	Kind   ValueKind
	Type   *Type
	Bool   bool
	Int    int64
	Double float64
	String string
	// Enum is the value of an enum; nil if the file gave a number without a
	// name. Int holds the number in both cases.
	Enum *EnumValue
	// List holds the elements of a list or set, those of a set once each.
	List []*Value
	// Entries hold the pairs of a map; no key comes twice.
	Entries []ValueEntry
	// Fields are the members that the file gives; the others have their
	// defaults.
	Fields []ValueField
	// Constant is set when the file named a constant of this very type; the
	// other members hold the same value written out.
	Constant *Constant
	Position Position
}

// ValueEntry is one pair of a map value.
type ValueEntry struct{ Key, Value *Value }

// ValueField is one member of a struct value.
type ValueField struct {
	Field *Field
	Value *Value
}

// Service is a set of methods.
type Service struct {
	Name        string
	Doc         string
	Extends     *Service
	Methods     []*Method
	Annotations Annotations
	File        *File
	Position    Position
	GoName      string
	// GoServer and GoClient are the Go interfaces, GoNewClient is the function
	// that returns a client, and GoMethods are the methods of both interfaces,
	// inherited ones first. For plugins.
	GoServer    string
	GoClient    string
	GoNewClient string
	GoMethods   []GoMethod
}

// Method is one procedure of a service.
type Method struct {
	Name   string
	Doc    string
	Oneway bool
	// Result has KindVoid for void methods.
	Result *Type
	// Arguments and Throws are never optional, and Throws not required either;
	// the types of Throws are exceptions.
	Arguments   []*Field
	Throws      []*Field
	Annotations Annotations
	Service     *Service
	Position    Position
	GoName      string
}
