package gen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/outfolder"
)

// Config says what to generate.
type Config struct {
	// Files are the definitions.
	Files []string
	// Output is the folder that packages are generated into; empty means "gen".
	Output string
	// IncludeDirs are searched for included files, after the folder of the
	// including file.
	IncludeDirs []string
	// PackagePrefix is the import path of the output folder; empty means that it
	// is found from the nearest go.mod.
	PackagePrefix string
	// AllowNegativeIDs permits field ids below 1, as old definitions have them.
	AllowNegativeIDs bool
	// ImplicitIDs numbers fields without an id; empty means that they are errors.
	ImplicitIDs ImplicitIDs
	// Namespaces are other names for namespaces for Go, by the names in the
	// definitions.
	Namespaces map[string]string
	// IgnoreInitialisms leaves words such as id and url as they are in Go names:
	// UserId instead of UserID.
	IgnoreInitialisms bool
	// EnumsAsText makes enums names in JSON, and not numbers.
	EnumsAsText bool
	// NoMethods leaves out what values can do apart from being written and read:
	// String, Equal, Clone, Detach and SizeThrift.
	NoMethods bool
	// KeepUnknown makes structs keep the fields that the definition does not have, and
	// send them on. The annotation go.unknown of a struct says otherwise.
	KeepUnknown bool
	// UniqueSets refuses to write and to read sets with equal elements. The annotation
	// go.set of a field says otherwise.
	UniqueSets bool
	// Reuse makes decoding able to take the memory of the struct that it decodes into,
	// if thrift.UnmarshalConfig.Reuse asks for it.
	Reuse bool
	// Views makes views of all structs: types that read and change fields where they are in
	// a message. The annotation go.view asks for that of a struct and those in it.
	Views bool
	// ViewMethods says which structs methods take and return as views; empty means none.
	// The annotation go.views of a method or service says otherwise.
	ViewMethods ViewMethods
	// Shape is what structs look like in Go; empty means ShapeFulmar.
	Shape Shape
	// KitexNested has ShapeKitex embed the fields with thrift.nested, as the tool of Kitex
	// does with enable_nested_struct. ShapeFulmar always does.
	KitexNested bool
	// NoDescriptors leaves out what package descriptor reads.
	NoDescriptors bool
	// FrontEnds read definitions in other languages: each those that it reads and no
	// earlier one. Fields that are about Thrift do not change what comes of them.
	FrontEnds []FrontEnd `json:"-"`
	// Check writes nothing: Run fails with ErrStale if anything in the output
	// folder is not as it would be generated.
	Check bool
}

// Shape is what names and types generated structs, enums and constants have.
type Shape string

// The shapes.
const (
	// ShapeFulmar holds structs by value and optional scalars in thrift.Opt.
	ShapeFulmar Shape = "fulmar"
	// ShapeKitex is that of Kitex's tool, so that code which uses its structs
	// compiles: pointers, and the methods GetX, SetX, IsSetX, InitDefault, BLength,
	// FastWrite and FastRead.
	ShapeKitex Shape = "kitex"
)

var errShape = errors.New("expected fulmar or kitex")

func (s Shape) check() error {
	switch s {
	case "", ShapeFulmar, ShapeKitex:
		return nil
	default:
		return errShape
	}
}

// ImplicitIDs is how fields without an id are numbered.
type ImplicitIDs string

// The ways of other compilers.
const (
	// ImplicitIDsApache is that of Apache Thrift, which counts down from -1.
	ImplicitIDsApache ImplicitIDs = "apache"
	// ImplicitIDsThriftgo is that of thriftgo and so of Kitex, which counts up
	// from the field before.
	ImplicitIDsThriftgo ImplicitIDs = "thriftgo"
)

var errImplicitIDs = errors.New("expected apache or thriftgo")

// mode is what package idl calls it.
func (i ImplicitIDs) mode() (idl.ImplicitIDs, error) {
	switch i {
	case "":
		return 0, nil
	case ImplicitIDsApache:
		return idl.ImplicitIDsApache, nil
	case ImplicitIDsThriftgo:
		return idl.ImplicitIDsThriftgo, nil
	default:
		return 0, errImplicitIDs
	}
}

// defaultOutput is the value of Config.Output that empty stands for.
const defaultOutput = "gen"

// Validate refuses no files and empty names, which a shell makes of a variable
// that is not set: they would quietly mean the working directory.
func (c Config) Validate() error {
	var problems []error
	if len(c.Files) == 0 {
		problems = append(problems, errors.New("no files to generate from"))
	}
	if slices.Contains(c.IncludeDirs, "") {
		problems = append(problems, errors.New("a folder for included files has an empty name"))
	}
	if slices.Contains(c.Files, "") {
		problems = append(problems, errors.New("a file name is empty"))
	}
	if _, err := c.ImplicitIDs.mode(); err != nil {
		problems = append(problems, fmt.Errorf("implicit ids %.80q: %w", string(c.ImplicitIDs), err))
	}
	if err := c.Shape.check(); err != nil {
		problems = append(problems, fmt.Errorf("shape %.80q: %w", string(c.Shape), err))
	}
	if c.Shape == ShapeKitex && c.EnumsAsText {
		problems = append(problems, errors.New("enums are numbers in JSON in the shape of Kitex"))
	}
	if c.Shape == ShapeKitex && c.Reuse {
		problems = append(problems, errors.New("memory cannot be reused in the shape of Kitex"))
	}
	if err := c.ViewMethods.check(); err != nil {
		problems = append(problems, fmt.Errorf("view methods %.80q: %w", string(c.ViewMethods), err))
	}
	if c.Shape == ShapeKitex && (c.Views || c.ViewMethods != "") {
		problems = append(problems, errors.New("there are no views in the shape of Kitex"))
	}
	if c.Shape != ShapeKitex && c.KitexNested {
		problems = append(problems, errors.New("--kitex-nested is for the shape of Kitex; others embed what has thrift.nested without it"))
	}
	return errors.Join(problems...)
}

// The ways in which Run fails that its result explains.
var (
	// ErrInvalid is returned if Result.Diagnostics hold an error.
	ErrInvalid = errors.New("the definitions have errors")
	// ErrStale is returned if Result.Stale holds something.
	ErrStale = errors.New("the output folder is not up to date")
)

// Result is what a run did.
type Result struct {
	// Diagnostics are errors and warnings about definitions, those of each step
	// sorted by position.
	Diagnostics []Diagnostic
	// Packages and Files count what was generated, Written and Removed what of
	// that changed in the output folder.
	Packages int
	Files    int
	Written  int
	Removed  int
	// Stale are the files that Config.Check found not to be up to date.
	Stale []StaleFile
}

// StaleFile is a file that a run without Config.Check would write or remove.
type StaleFile struct {
	// Name has the output folder in front.
	Name string
	// Problem completes a sentence that begins with the name: "is missing".
	Problem string
}

// Run generates. Nothing is written unless everything is free of errors. It is
// for one goroutine at a time in one output folder; plugins are called by the
// goroutine of the caller.
func Run(config Config, plugins ...Plugin) (Result, error) {
	return runWriting(func(write func(context.Context) error) error { return write(context.Background()) }, config, plugins)
}

// runWriting is Run which calls writing with what changes the output folder.
func runWriting(writing func(write func(context.Context) error) error, config Config, plugins []Plugin) (Result, error) {
	r := &run{config: config, plugins: plugins, writing: writing}
	if r.config.Output == "" {
		r.config.Output = defaultOutput
	}
	err := r.run()
	return r.result, err
}

// run is one call of Run.
type run struct {
	config  Config
	plugins []Plugin
	writing func(write func(context.Context) error) error
	program *schema.Program
	result  Result
	// transformed are the names of the plugins whose Transform ran.
	transformed []string
}

func (r *run) run() error {
	if err := r.config.Validate(); err != nil {
		return err
	}
	if err := errors.Join(r.checkPlugins(), r.config.checkFrontEnds(len(r.plugins))); err != nil {
		return err
	}
	if _, err := outfolder.MissingFolders(r.config.Output); err != nil {
		return err
	}
	prefix, err := r.importPrefix()
	if err != nil {
		return err
	}
	names, others := r.config.split()
	var files []emit.File
	if len(names) > 0 {
		if files, err = r.fromThrift(names, prefix); err != nil {
			return err
		}
	}
	if len(others) > 0 {
		more, err := r.loadOthers(others, prefix)
		if err != nil {
			return err
		}
		if files, err = r.together(files, more); err != nil {
			return err
		}
	}
	return r.write(files)
}

// fromThrift generates from definitions in Thrift.
func (r *run) fromThrift(names []string, prefix string) ([]emit.File, error) {
	implicit, err := r.config.ImplicitIDs.mode()
	if err != nil {
		return nil, err
	}
	program, diagnostics := idl.Load(idl.Options{
		Files:            names,
		IncludeDirs:      r.config.IncludeDirs,
		AllowNegativeIDs: r.config.AllowNegativeIDs,
		ImplicitIDs:      implicit,
		Namespaces:       r.config.Namespaces,
	})
	if err := r.diagnose(diagnostics); err != nil {
		return nil, err
	}
	r.program = program
	if err := r.transform(); err != nil {
		return nil, err
	}
	return r.generate(prefix)
}

func (r *run) compare(files []emit.File) error {
	differences, err := outfolder.Compare(r.config.Output, files)
	for _, difference := range differences {
		r.result.Stale = append(r.result.Stale, StaleFile{Name: difference.Name, Problem: string(difference.State)})
	}
	if err == nil && len(differences) > 0 {
		err = ErrStale
	}
	return err
}

// diagnose keeps diagnostics, and fails if one is an error.
func (r *run) diagnose(diagnostics idl.Diagnostics) error {
	for _, one := range diagnostics {
		r.result.Diagnostics = append(r.result.Diagnostics, Diagnostic{Warning: one.Severity == idl.SeverityWarning, Position: one.Position, Message: one.Message})
	}
	if diagnostics.HasErrors() {
		return ErrInvalid
	}
	return nil
}

// keep keeps what a plugin had to say and returns how many of it are errors.
func (r *run) keep(said *report) int {
	slices.SortStableFunc(said.list, func(a, b Diagnostic) int {
		return comparePositions(a.Position, b.Position)
	})
	r.result.Diagnostics = append(r.result.Diagnostics, said.list...)
	return said.errors
}

func (r *run) checkPlugins() error {
	seen := map[string]bool{}
	for _, plugin := range r.plugins {
		if plugin == nil {
			return errors.New("a plugin is nil")
		}
		var name string
		if err := guard(func() error { name = plugin.Name(); return nil }); err != nil {
			return fmt.Errorf("the name of a plugin: %w", err)
		}
		if err := checkName(name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("plugin %s: is there twice", name)
		}
		seen[name] = true
	}
	return nil
}

// transform lets plugins change the model, and checks it after each.
func (r *run) transform() error {
	for _, plugin := range r.plugins {
		model := &Model{report: report{plugin: plugin.Name()}, Program: r.program}
		err := guard(func() error { return plugin.Transform(model) })
		if err == nil && model.errors == 0 {
			if model.Program != nil {
				r.program = model.Program
			}
			checkModel(r.program, &model.report)
		}
		said := r.keep(&model.report)
		switch {
		case err != nil:
			return fmt.Errorf("plugin %s: %w", model.plugin, err)
		case said > 0:
			return ErrInvalid
		}
		r.transformed = append(r.transformed, model.plugin)
		if err := r.diagnose(idl.Recheck(r.program)); err != nil {
			return err
		}
	}
	return nil
}

// generate prints the model with what plugins add.
func (r *run) generate(prefix string) (files []emit.File, err error) {
	err = r.guardModel(func() error {
		prepared, diagnostics := emit.Prepare(r.program, emit.Options{
			ImportPrefix:      prefix,
			IgnoreInitialisms: r.config.IgnoreInitialisms,
			EnumText:          r.config.EnumsAsText,
			NoMethods:         r.config.NoMethods,
			KeepUnknown:       r.config.KeepUnknown,
			UniqueSets:        r.config.UniqueSets,
			Reuse:             r.config.Reuse,
			Views:             r.config.Views,
			ViewMethods:       string(r.config.ViewMethods),
			Kitex:             r.config.Shape == ShapeKitex,
			KitexNested:       r.config.KitexNested,
			NoDescriptors:     r.config.NoDescriptors,
		})
		if err := r.diagnose(diagnostics); err != nil {
			return err
		}
		if err := r.runPlugins(prepared); err != nil {
			return err
		}
		var printed idl.Diagnostics
		files, printed = prepared.Print()
		return r.diagnose(printed)
	})
	return files, err
}

// guardModel makes a panic of the printer an error if it can be due to a plugin:
// the check of the model is not the printer's own.
func (r *run) guardModel(call func() error) error {
	if len(r.transformed) == 0 {
		return call()
	}
	var err error
	if panicked := guard(func() error { err = call(); return nil }); panicked != nil {
		return fmt.Errorf("printing the model as plugin %s left it: %w", strings.Join(r.transformed, " or "), panicked)
	}
	return err
}

// runPlugins calls Generate of all plugins, and fails after the last if one had
// errors to report.
func (r *run) runPlugins(prepared *emit.Prepared) error {
	if len(r.plugins) == 0 {
		return nil
	}
	prepared.Describe()
	said := 0
	for _, plugin := range r.plugins {
		output := &Output{report: report{plugin: plugin.Name()}, program: r.program, add: prepared.Add}
		output.addFile = func(file *schema.File, suffix, text string, imports []schema.Import) error {
			return prepared.AddFile("plugin "+output.plugin, file, suffix, text, imports)
		}
		err := guard(func() error { return plugin.Generate(output) })
		said += r.keep(&output.report)
		if err != nil {
			return fmt.Errorf("plugin %s: %w", output.plugin, err)
		}
	}
	if said > 0 {
		return ErrInvalid
	}
	return nil
}
