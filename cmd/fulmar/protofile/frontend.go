// Package protofile reads definitions in Protobuf for "fulmar gen". Protocompile reads the
// files, Go's official generator makes the messages, and services become the model that
// those in Thrift become.
package protofile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// FrontEnd is the front end for files whose names end in .proto.
type FrontEnd struct {
	// ExistingMessages makes services only: the packages that go_package names have the
	// messages already.
	ExistingMessages bool
	// FileSystem is where files are read; nil means the operating system's.
	FileSystem idl.FileSystem
}

var _ gen.FrontEnd = (*FrontEnd)(nil)

// Reads implements gen.FrontEnd.
func (f *FrontEnd) Reads(name string) bool { return strings.EqualFold(path.Ext(name), ".proto") }

// Load implements gen.FrontEnd.
func (f *FrontEnd) Load(request gen.LoadRequest) gen.Loaded {
	l := &loading{request: request, existing: f.ExistingMessages, files: f.FileSystem, bytes: limits.IDLBytes, words: limits.IDLWords, columns: limits.ProtoColumns, shown: map[string]string{}}
	if l.files == nil {
		l.files = idl.OperatingSystem()
	}
	loaded := l.load()
	loaded.Diagnostics = l.finish()
	if l.errors > 0 {
		loaded.Program, loaded.Files = nil, nil
	}
	return loaded
}

// loading is one call of Load.
type loading struct {
	request  gen.LoadRequest
	existing bool
	files    idl.FileSystem
	// roots are the folders that names of files are relative to, of which the first,
	// included, are those of -I, and readable the real names of folders that may be read
	// besides.
	roots    []root
	included int
	readable []string
	// bytes, words and columns are what the files to come may still hold.
	bytes, words, columns int
	// shown maps the names of files to those that the user can open.
	shown map[string]string

	handler          reporter.Reporter
	list             []gen.Diagnostic
	errors, warnings int
}

func (l *loading) load() gen.Loaded {
	names := l.names()
	if l.errors > 0 {
		return gen.Loaded{}
	}
	units := l.compile(names)
	if l.errors > 0 {
		return gen.Loaded{}
	}
	l.assignPackages(units)
	if l.errors > 0 {
		return gen.Loaded{}
	}
	return l.generate(units)
}

// unit is one file that was read.
type unit struct {
	proto *descriptorpb.FileDescriptorProto
	// named says that the user named it, and not only another file.
	named bool
	// position returns the place of what a path of field numbers leads to.
	position func(path ...int32) schema.Position
	goPackage
}

func (l *loading) errorf(position schema.Position, format string, arguments ...any) {
	if l.errors++; l.errors <= limits.IDLErrors {
		l.list = append(l.list, gen.Diagnostic{Position: position, Message: oneLine(fmt.Sprintf(format, arguments...))})
	}
}

func (l *loading) warningf(position schema.Position, format string, arguments ...any) {
	if l.warnings++; l.warnings <= limits.IDLErrors {
		l.list = append(l.list, gen.Diagnostic{Warning: true, Position: position, Message: oneLine(fmt.Sprintf(format, arguments...))})
	}
}

// finish returns the diagnostics in order, each once.
func (l *loading) finish() []gen.Diagnostic {
	slices.SortStableFunc(l.list, func(a, b gen.Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Position.File, b.Position.File), cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column), cmp.Compare(a.Message, b.Message),
		)
	})
	list := slices.Compact(l.list)
	if l.errors > limits.IDLErrors {
		list = append(list, gen.Diagnostic{
			Position: schema.Position{File: "fulmar gen"},
			Message:  fmt.Sprintf("too many errors (limit %d), the rest is not shown", limits.IDLErrors),
		})
	}
	return list
}

// oneLine keeps a message to its line, and a terminal from obeying what a file says.
func oneLine(text string) string {
	const longest = 1 << 10
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u00a0':
			return ' '
		case r < ' ', 0x7f <= r && r < 0xa0:
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "?"))
}

func clip(text string) string {
	const longest = 80
	if len(text) <= longest {
		return text
	}
	return text[:longest] + "..."
}
