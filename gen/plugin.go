// Package gen is the generator of "fulmar gen" as a library, with plugins: it
// turns interface definitions into Go code, and lets others change the model,
// insert text and add files. docs/guide/plugins.md shows how.
//
// A program of one's own that generates with plugins calls Main. A program that
// "fulmar gen --plugin" starts calls PluginMain. Both take the same Plugin.
package gen

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Plugin takes part in a run of the generator. Plugins are called one at a time,
// in the order in which they were given: first Transform of all, then Generate of
// all. A panic is an error of the run that names the plugin. A plugin is trusted
// as the program is that it belongs to; what it adds is checked all the same.
type Plugin interface {
	// Name is how messages call it, and the middle of the name of its program:
	// small letters, digits and hyphens after a letter, at most 64 B (PluginNameBytes)
	// bytes.
	Name() string
	// Transform may change the model before names are chosen and code is
	// printed: add, change and remove declarations, annotations and comments.
	// What it leaves is checked. It is not called in a program that "fulmar gen"
	// starts, which gets a model that is finished.
	Transform(model *Model) error
	// Generate adds to the code of a finished model, which it only reads.
	Generate(output *Output) error
}

// Diagnostic is something to tell the author of a definition.
type Diagnostic struct {
	// Warning says that it is no error.
	Warning bool
	// Position has Line 0 if it is about a file as a whole.
	Position schema.Position
	Message  string
}

// String returns "file:line:column: message".
func (d Diagnostic) String() string {
	converted := idl.Diagnostic{Position: d.Position, Message: d.Message}
	if d.Warning {
		converted.Severity = idl.SeverityWarning
	}
	return converted.String()
}

// report collects what a plugin has to say.
type report struct {
	plugin string
	// bare says that somebody else puts the name in front of messages.
	bare     bool
	list     []Diagnostic
	errors   int
	warnings int
}

// Errorf tells the author of a definition about a mistake at a position, usually
// that of an annotation. Nothing is written then, but the run goes on, so that
// all mistakes are found. Of very many only the first are shown.
func (r *report) Errorf(position schema.Position, format string, arguments ...any) {
	if r.errors++; r.errors <= limits.IDLErrors {
		r.add(Diagnostic{Position: position, Message: fmt.Sprintf(format, arguments...)})
	}
}

// Warningf tells the author of a definition about something that is no mistake.
func (r *report) Warningf(position schema.Position, format string, arguments ...any) {
	if r.warnings++; r.warnings <= limits.IDLErrors {
		r.add(Diagnostic{Warning: true, Position: position, Message: fmt.Sprintf(format, arguments...)})
	}
}

func (r *report) add(diagnostic Diagnostic) {
	diagnostic.Message = oneLine(diagnostic.Message)
	if !r.bare {
		diagnostic.Message = "plugin " + r.plugin + ": " + diagnostic.Message
	}
	if !r.bare && diagnostic.Position.File == "" {
		diagnostic.Position.File = "fulmar gen"
	}
	diagnostic.Position.File = oneLine(diagnostic.Position.File)
	r.list = append(r.list, diagnostic)
}

// oneLine keeps a message to its line, and a terminal from obeying it: it may
// come from another program.
func oneLine(text string) string {
	const longest = 4 << 10
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case r < ' ', 0x7f <= r && r < 0xa0:
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(strings.TrimSpace(text), "?"))
}

// Model is what Transform gets.
type Model struct {
	report
	// Program may be changed in any way that leaves it what package schema says.
	// Imports of packages need no care: they are found again.
	Program *schema.Program
}

// Output is what Generate gets: the model, and ways to add to what is printed.
// Text is Go without layout. It may name the packages of GoImports of its
// package, and those that are given with it; what it does not name is not
// imported. What was wrong with a text is reported at the end of the run, with
// the name of the plugin, of the point and of the place in the definition.
//
// Texts come in the order of the calls, those of earlier plugins first.
type Output struct {
	report
	program *schema.Program
	add     func(emit.Addition) error
	addFile func(file *schema.File, suffix, text string, imports []schema.Import) error
}

// Program returns the model, with everything in it that is for plugins.
func (o *Output) Program() *schema.Program { return o.program }

// AfterStruct inserts declarations behind a struct, union or exception and its
// methods: point struct.after.
func (o *Output) AfterStruct(s *schema.Struct, text string, imports ...schema.Import) {
	o.insert(emit.AfterStruct, s, text, imports)
}

// StructFields inserts fields behind those of a struct, union or exception; they
// are not sent. Point struct.fields.
func (o *Output) StructFields(s *schema.Struct, text string, imports ...schema.Import) {
	o.insert(emit.StructFields, s, text, imports)
}

// FieldTag adds to the tag of a member of a struct, `db:"id"`. A key that is
// there already is an error. Point field.tag.
func (o *Output) FieldTag(field *schema.Field, text string) {
	o.insert(emit.FieldTag, field, text, nil)
}

// AfterEnum inserts declarations behind an enum and its functions: point
// enum.after.
func (o *Output) AfterEnum(enum *schema.Enum, text string, imports ...schema.Import) {
	o.insert(emit.AfterEnum, enum, text, imports)
}

// AfterService inserts declarations behind a service: point service.after.
func (o *Output) AfterService(service *schema.Service, text string, imports ...schema.Import) {
	o.insert(emit.AfterService, service, text, imports)
}

// EndOfFile inserts declarations at the end of the file with the types of a
// definition: point file.end.
func (o *Output) EndOfFile(file *schema.File, text string, imports ...schema.Import) {
	o.insert(emit.EndOfFile, file, text, imports)
}

// AddFile adds a file to the package of a definition. It is called
// <definition>_<suffix>.go; suffix is small letters and digits after a letter.
// The text is declarations only: header, package clause and imports are printed.
// A later run that does not add it removes it.
func (o *Output) AddFile(file *schema.File, suffix, text string, imports ...schema.Import) {
	if err := o.addFile(file, suffix, text, imports); err != nil {
		o.Errorf(filePosition(file), "file %.80s: %v", suffix, err)
	}
}

func (o *Output) insert(point emit.Point, of any, text string, imports []schema.Import) {
	addition := emit.Addition{Origin: "plugin " + o.plugin, Point: point, Of: of, Text: text, Imports: imports}
	if err := o.add(addition); err != nil {
		o.Errorf(emit.PositionOf(of), "%s: %v", point, err)
	}
}

func comparePositions(a, b schema.Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

func filePosition(file *schema.File) (position schema.Position) {
	if file != nil {
		position.File = file.Path
	}
	return position
}

var pluginName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// checkName says what is wrong with the name of a plugin.
func checkName(name string) error {
	if len(name) > limits.PluginNameBytes || !pluginName.MatchString(name) {
		return fmt.Errorf("plugin name %.80q: expected small letters, digits and hyphens after a letter, at most %d bytes", name, limits.PluginNameBytes)
	}
	return nil
}

// guard calls a function of a plugin and makes its panic an error that says
// where it was.
func guard(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panics: %v%s", value, panicPlace())
		}
	}()
	return call()
}

// panicPlace is the first line behind the panic that is not of the runtime.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	panicked := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !inRuntime {
			return fmt.Sprintf(" (%s:%d)", frame.File, frame.Line)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
