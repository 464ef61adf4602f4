package schema

import "fmt"

// What follows is how the generated code looks. It is filled after everything
// has its GoName and only for plugins, which see it in gen.Plugin's Generate.
//
// Types are texts as the package writes them that the declaration belongs to:
// "common.Money", "thrift.Opt[string]". The names before the dots are those of
// Package.GoImports.

// Import is a package that Go code imports, and the name that it has there.
type Import struct {
	Name string
	Path string
}

// Presence says how a Go field shows that it holds nothing.
type Presence uint8

// The kinds of presence.
const (
	// PresenceAlways fields hold a value of GoType, always.
	PresenceAlways Presence = iota
	// PresenceOpt fields are a thrift.Opt with the methods Get and IsSet.
	PresenceOpt
	// PresenceNil fields are a slice or a map, and nil if they are absent.
	PresenceNil
	// PresencePointer fields point to the value, and are nil if it is absent.
	PresencePointer
)

var presenceNames = [...]string{"always", "opt", "nil", "pointer"}

// String returns the word that the plugin protocol uses.
func (p Presence) String() string {
	if int(p) < len(presenceNames) {
		return presenceNames[p]
	}
	return fmt.Sprintf("Presence(%d)", p)
}

// GoMethod is a method of the Go interfaces of a service. Both begin with a
// context; that of the client ends with options for the call.
type GoMethod struct {
	// Method is what it calls; its Service may be an ancestor.
	Method     *Method
	Name       string
	Parameters []GoParameter
	// Result is the type of the first of two results, the second of which is an
	// error. It is empty if there is the error only.
	Result string
	// ResultView says that Result is a view of the struct that the definition names,
	// because of go.views or the option ViewMethods.
	ResultView bool
}

// GoParameter is a parameter of a GoMethod behind the context.
type GoParameter struct {
	Name string
	Type string
	// View says that Type is a view of the struct that the definition names, a value
	// whose method Struct decodes it.
	View bool
}
