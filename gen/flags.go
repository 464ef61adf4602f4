package gen

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// Bind makes flags set the fields of c, except Files. The flags of one letter
// are short for "output" (o) and "include" (I). This is how "fulmar gen" and
// Main have the same flags.
func (c *Config) Bind(flags *flag.FlagSet) {
	c.Output = defaultOutput
	for _, name := range []string{"output", "o"} {
		flags.Var((*stringValue)(&c.Output), name, "output folder")
	}
	for _, name := range []string{"include", "I"} {
		flags.Var((*stringArrayValue)(&c.IncludeDirs), name, "folder to look for included files in, after the folder of the including file (repeatable)")
	}
	flags.StringVar(&c.PackagePrefix, "package-prefix", "", "import path of the output folder (default: found from the nearest go.mod)")
	flags.BoolVar(&c.AllowNegativeIDs, "allow-negative-ids", false, "accept field ids below 1, as old definitions have them")
	flags.Var((*implicitIDsValue)(&c.ImplicitIDs), "implicit-ids", "number fields without an id as another compiler does: Apache Thrift counts down from -1, thriftgo (Kitex) up from the field before (default: such fields are errors)")
	flags.Var((*namespacesValue)(&c.Namespaces), "namespace", "call a namespace for Go otherwise, in all files that have it, for definitions that cannot be changed (repeatable)")
	flags.BoolVar(&c.IgnoreInitialisms, "ignore-initialisms", false, "leave words such as id and url as they are in Go names: UserId instead of UserID")
	flags.Var((*enumsValue)(&c.EnumsAsText), "json-enums", "what enums are in JSON (default: number)")
	flags.BoolVar(&c.NoMethods, "no-methods", false, "leave out String, Equal, Clone, Detach and SizeThrift, two fifths of the code")
	flags.BoolVar(&c.Reuse, "reuse", false, "make decoding able to take the memory of the struct that it decodes into, with UnmarshalConfig.Reuse")
	flags.BoolVar(&c.Views, "views", false, "make views of all structs: types that read and change fields where they are in a message")
	flags.Var((*viewMethodsValue)(&c.ViewMethods), "view-methods", "have methods take and return views of their structs (default: none)")
	flags.BoolVar(&c.KeepUnknown, "keep-unknown", false, "make structs keep the fields that their definition does not have, and send them on")
	flags.BoolVar(&c.UniqueSets, "unique-sets", false, "refuse to write and to read sets with equal elements, which are lists in Go")
	flags.Var((*shapeValue)(&c.Shape), "shape", "what structs look like in Go: kitex has the names, types and methods of Kitex's tool, for services that are switched (default: fulmar)")
	flags.BoolVar(&c.KitexNested, "kitex-nested", false, "in the shape of Kitex, embed the fields with thrift.nested, as Kitex's tool does with enable_nested_struct")
	flags.BoolVar(&c.NoDescriptors, "no-descriptors", false, "leave out what package descriptor reads: the definition, for code that does not know it")
	flags.BoolVar(&c.Check, "check", false, "write nothing: list the files that are not up to date, and exit with 1 if there are any")
}

var errNoFolder = errors.New("is empty, expected the name of a folder")

// stringValue is the value of a flag that must not be empty, as a shell makes it
// of a variable that is not set: that would quietly mean the working directory.
// Help texts call it by the first half of its name.
type stringValue string

var _ flag.Value = (*stringValue)(nil)

func (v *stringValue) String() string { return string(*v) }

// Set replaces the value.
func (v *stringValue) Set(text string) error {
	if text == "" {
		return errNoFolder
	}
	*v = stringValue(text)
	return nil
}

// stringArrayValue is the value of a flag that may be repeated.
type stringArrayValue []string

var _ flag.Value = (*stringArrayValue)(nil)

// String returns what help texts show as the default: nothing.
func (v *stringArrayValue) String() string { return "" }

// Set adds a value.
func (v *stringArrayValue) Set(text string) error {
	if text == "" {
		return errNoFolder
	}
	*v = append(*v, text)
	return nil
}

// enumsValue is the value of a flag for EnumsAsText.
type enumsValue bool

var _ flag.Value = (*enumsValue)(nil)

// Type is how help texts call the value.
func (v *enumsValue) Type() string { return "number|text" }

// String is empty as long as nothing was chosen, so that help texts show no
// default.
func (v *enumsValue) String() string {
	if *v {
		return "text"
	}
	return ""
}

// Set replaces the value.
func (v *enumsValue) Set(text string) error {
	if text != "number" && text != "text" {
		return errors.New("expected number or text")
	}
	*v = text == "text"
	return nil
}

// implicitIDsValue is the value of a flag for ImplicitIDs.
type implicitIDsValue ImplicitIDs

var _ flag.Value = (*implicitIDsValue)(nil)

// Type is how help texts call the value.
func (v *implicitIDsValue) Type() string { return "apache|thriftgo" }

// String is empty as long as nothing was chosen, so that help texts show no
// default.
func (v *implicitIDsValue) String() string { return string(*v) }

// Set replaces the value.
func (v *implicitIDsValue) Set(text string) error {
	if _, err := ImplicitIDs(text).mode(); err != nil || text == "" {
		return errImplicitIDs
	}
	*v = implicitIDsValue(text)
	return nil
}

// shapeValue is the value of a flag for Shape.
type shapeValue Shape

var _ flag.Value = (*shapeValue)(nil)

// Type is how help texts call the value.
func (v *shapeValue) Type() string { return "fulmar|kitex" }

// String is empty as long as nothing was chosen, so that help texts show no
// default.
func (v *shapeValue) String() string { return string(*v) }

// Set replaces the value.
func (v *shapeValue) Set(text string) error {
	if Shape(text).check() != nil || text == "" {
		return errShape
	}
	*v = shapeValue(text)
	return nil
}

// namespacesValue is the value of a flag that may be repeated.
type namespacesValue map[string]string

var _ flag.Value = (*namespacesValue)(nil)

// Type is how help texts call the value.
func (v *namespacesValue) Type() string { return "old=new" }

// String returns what help texts show as the default: nothing.
func (v *namespacesValue) String() string { return "" }

// Set adds a pair.
func (v *namespacesValue) Set(text string) error {
	old, other, found := strings.Cut(text, "=")
	if _, again := (*v)[old]; again {
		return fmt.Errorf("%s is given twice", old)
	}
	if !found || old == "" || other == "" {
		return errors.New("expected old=new")
	}
	if *v == nil {
		*v = namespacesValue{}
	}
	(*v)[old] = other
	return nil
}
