// Package pluginwire is the protocol between the generator and plugin programs:
// JSON in both directions, described in docs/protocol/plugin.md. It knows the
// bytes only; starting programs is for others.
//
// What refers to something that is declared does so by its index in one of the
// lists of the request, so that cycles need no rule of their own.
package pluginwire

import "encoding/json"

// Version is that of the protocol. Whoever gets another one refuses it.
const Version = 1

// Request is what a plugin program reads.
type Request struct {
	Protocol int `json:"protocol"`
	// Generator says who asks, for messages.
	Generator string `json:"generator"`
	// Plugin is the name of who is asked, and Options what the user gave it.
	Plugin  string            `json:"plugin"`
	Options map[string]string `json:"options,omitempty"`

	Packages  []Package  `json:"packages"`
	Files     []File     `json:"files"`
	Constants []Constant `json:"constants,omitempty"`
	Typedefs  []Typedef  `json:"typedefs,omitempty"`
	Enums     []Enum     `json:"enums,omitempty"`
	Structs   []Struct   `json:"structs,omitempty"`
	Services  []Service  `json:"services,omitempty"`
}

// Package is a schema.Package.
type Package struct {
	Name       string  `json:"name"`
	Path       string  `json:"path"`
	Files      []int   `json:"files"`
	Imports    []int   `json:"imports,omitempty"`
	Root       bool    `json:"root,omitempty"`
	ImportPath string  `json:"importPath,omitempty"`
	GoImports  Imports `json:"goImports,omitempty"`
}

// File is a schema.File. What it declares are indexes.
type File struct {
	Path       string            `json:"path"`
	Base       string            `json:"base"`
	Doc        string            `json:"doc,omitempty"`
	Namespaces map[string]string `json:"namespaces,omitempty"`
	Includes   []int             `json:"includes,omitempty"`
	Package    int               `json:"package"`
	Constants  []int             `json:"constants,omitempty"`
	Typedefs   []int             `json:"typedefs,omitempty"`
	Enums      []int             `json:"enums,omitempty"`
	Structs    []int             `json:"structs,omitempty"`
	Services   []int             `json:"services,omitempty"`
}

// Position is a schema.Position as a text: "file:line:column", or the file
// alone.
type Position string

// Annotation is a schema.Annotation.
type Annotation struct {
	Key      string   `json:"key"`
	Value    string   `json:"value"`
	Position Position `json:"position,omitempty"`
}

// Type is a schema.Type. Enum, Struct and Typedef are indexes.
type Type struct {
	Kind        string       `json:"kind"`
	Key         *Type        `json:"key,omitempty"`
	Element     *Type        `json:"element,omitempty"`
	Enum        *int         `json:"enum,omitempty"`
	Struct      *int         `json:"struct,omitempty"`
	Typedef     *int         `json:"typedef,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"`
	Position    Position     `json:"position,omitempty"`
}

// Typedef is a schema.Typedef.
type Typedef struct {
	Name        string       `json:"name"`
	Doc         string       `json:"doc,omitempty"`
	Type        *Type        `json:"type"`
	Annotations []Annotation `json:"annotations,omitempty"`
	File        int          `json:"file"`
	Position    Position     `json:"position"`
	GoName      string       `json:"goName"`
}

// Enum is a schema.Enum.
type Enum struct {
	Name        string       `json:"name"`
	Doc         string       `json:"doc,omitempty"`
	Values      []EnumValue  `json:"values,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"`
	File        int          `json:"file"`
	Position    Position     `json:"position"`
	GoName      string       `json:"goName"`
	GoParser    string       `json:"goParser"`
}

// EnumValue is a schema.EnumValue.
type EnumValue struct {
	Name        string       `json:"name"`
	Doc         string       `json:"doc,omitempty"`
	Number      int32        `json:"number"`
	Annotations []Annotation `json:"annotations,omitempty"`
	Position    Position     `json:"position"`
	GoName      string       `json:"goName"`
}

// Struct is a schema.Struct.
type Struct struct {
	Name          string       `json:"name"`
	Doc           string       `json:"doc,omitempty"`
	Category      string       `json:"category"`
	Fields        []Field      `json:"fields,omitempty"`
	Annotations   []Annotation `json:"annotations,omitempty"`
	File          int          `json:"file"`
	Position      Position     `json:"position"`
	GoName        string       `json:"goName"`
	GoConstructor string       `json:"goConstructor"`
}

// Field is a schema.Field.
type Field struct {
	ID           int16        `json:"id"`
	Name         string       `json:"name"`
	Doc          string       `json:"doc,omitempty"`
	Requiredness string       `json:"requiredness"`
	Type         *Type        `json:"type"`
	Default      *Value       `json:"default,omitempty"`
	Annotations  []Annotation `json:"annotations,omitempty"`
	Position     Position     `json:"position"`
	GoName       string       `json:"goName"`
	GoType       string       `json:"goType,omitempty"`
	GoPresence   string       `json:"goPresence,omitempty"`
}

// Constant is a schema.Constant.
type Constant struct {
	Name        string       `json:"name"`
	Doc         string       `json:"doc,omitempty"`
	Type        *Type        `json:"type"`
	Value       *Value       `json:"value"`
	Annotations []Annotation `json:"annotations,omitempty"`
	File        int          `json:"file"`
	Position    Position     `json:"position"`
	GoName      string       `json:"goName"`
}

// Value is a schema.Value; its type is that of what it is for. Numbers are
// texts, because not every reader of JSON keeps 64 bits, and JSON has no NaN.
type Value struct {
	Kind string `json:"kind"`
	// Text holds a bool ("true"), a number, a string, or bytes that are not
	// UTF-8 in base64.
	Text   string `json:"text,omitempty"`
	Base64 string `json:"base64,omitempty"`
	// EnumValue is the index in the values of the enum.
	EnumValue *int         `json:"enumValue,omitempty"`
	List      []*Value     `json:"list,omitempty"`
	Entries   []ValueEntry `json:"entries,omitempty"`
	Fields    []ValueField `json:"fields,omitempty"`
	Constant  *int         `json:"constant,omitempty"`
	Position  Position     `json:"position,omitempty"`
}

// ValueEntry is a pair of a map.
type ValueEntry struct {
	Key   *Value `json:"key"`
	Value *Value `json:"value"`
}

// ValueField is a member of a struct; Field is the index in its fields.
type ValueField struct {
	Field int    `json:"field"`
	Value *Value `json:"value"`
}

// Service is a schema.Service.
type Service struct {
	Name        string       `json:"name"`
	Doc         string       `json:"doc,omitempty"`
	Extends     *int         `json:"extends,omitempty"`
	Methods     []Method     `json:"methods,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"`
	File        int          `json:"file"`
	Position    Position     `json:"position"`
	GoName      string       `json:"goName"`
	GoServer    string       `json:"goServer"`
	GoClient    string       `json:"goClient"`
	GoNewClient string       `json:"goNewClient"`
	GoMethods   []GoMethod   `json:"goMethods,omitempty"`
}

// Method is a schema.Method.
type Method struct {
	Name        string       `json:"name"`
	Doc         string       `json:"doc,omitempty"`
	Oneway      bool         `json:"oneway,omitempty"`
	Result      *Type        `json:"result"`
	Arguments   []Field      `json:"arguments,omitempty"`
	Throws      []Field      `json:"throws,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"`
	Position    Position     `json:"position"`
	GoName      string       `json:"goName"`
}

// GoMethod is a schema.GoMethod: of the service with index Service the method
// with index Method.
type GoMethod struct {
	Service    int           `json:"service"`
	Method     int           `json:"method"`
	Name       string        `json:"name"`
	Parameters []GoParameter `json:"parameters,omitempty"`
	Result     string        `json:"result,omitempty"`
	ResultView bool          `json:"resultView,omitempty"`
}

// GoParameter is a schema.GoParameter.
type GoParameter struct {
	Name string `json:"name"`
	Type string `json:"type"`
	View bool   `json:"view,omitempty"`
}

// Imports are imported packages by the names that code has for them.
type Imports map[string]string

var _ json.Unmarshaler = (*Imports)(nil)
