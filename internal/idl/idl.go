// Package idl loads Thrift interface definitions and turns them into the model
// that the generator works on.
//
// Loading has two steps. First all files are read and parsed, includes
// included. Then every name is looked up, every constant checked and converted,
// and the files are grouped into Go packages. The second step also looks at
// files with mistakes in them, and says nothing that could be a consequence of
// those: see ast.Gaps.
//
// Definitions may come from strangers. Files outside the folders that the
// caller named are not read, and package limits bounds the length, nesting,
// number and written-out size of what is.
package idl

import "github.com/fulmar-rpc/fulmar/gen/schema"

// Options says what to load.
type Options struct {
	// Files are the definitions to load, as named by the user.
	Files []string
	// IncludeDirs are searched for included files, in this order, after the
	// folder of the including file.
	IncludeDirs []string
	// AllowNegativeIDs permits field ids below 1, as old definitions have them.
	AllowNegativeIDs bool
	// ImplicitIDs says what happens to fields without an id.
	ImplicitIDs ImplicitIDs
	// Namespaces says what namespaces for Go are called instead, for definitions
	// that cannot be changed. The name of a file without one counts as well.
	Namespaces map[string]string
	// FileSystem is where files are read; nil means the operating system's.
	FileSystem FileSystem
}

// ImplicitIDs is how fields without an id are numbered. Other compilers do it
// differently, so nobody but the author knows which one the peers use.
type ImplicitIDs uint8

// Refused is the default. Apache Thrift counts down from -1; thriftgo, which
// Kitex uses, counts up from the field before, or from 1.
const (
	ImplicitIDsRefused ImplicitIDs = iota
	ImplicitIDsApache
	ImplicitIDsThriftgo
)

// Load reads the files and all that they include. The program is nil if the
// diagnostics, which are sorted, hold an error.
func Load(options Options) (*schema.Program, Diagnostics) {
	found := &collector{}
	units := loadUnits(options, found)
	var program *schema.Program
	if !found.full() {
		program = resolve(units, options, found)
	}
	if found.errors > 0 {
		program = nil
	}
	return program, found.finish()
}
