package idl

import "github.com/fulmar-rpc/fulmar/gen/schema"

// Recheck is for a program that somebody changed: it finds again which packages
// import which, puts imported ones first, and reports packages that import each
// other and types that can never be complete. References must be whole.
func Recheck(program *schema.Program) Diagnostics {
	r := &resolver{found: &collector{}}
	var structs []*schema.Struct
	for _, file := range program.Files {
		structs = append(structs, file.Structs...)
	}
	r.checkCompletable(structs)
	if r.found.errors == 0 {
		r.checkDefaults(structs)
	}
	program.Packages = r.orderPackages(program.Packages)
	return r.found.finish()
}
