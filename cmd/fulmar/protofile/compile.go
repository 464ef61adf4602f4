package protofile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/gofeaturespb"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// errFull ends a compilation of which no more errors are shown.
var errFull = errors.New("too many errors")

// compile reads the files and what they import. It returns imported files first.
func (l *loading) compile(names []string) []*unit {
	l.handler = reporter.NewReporter(l.report, func(err reporter.ErrorWithPos) {
		l.warningf(l.positionOf(err), "%s", err.Unwrap())
	})
	compiler := protocompile.Compiler{
		MaxParallelism: 1, // the order of errors is the same each time
		SourceInfoMode: protocompile.SourceInfoStandard,
		Reporter:       l.handler,
		Resolver:       protocompile.ResolverFunc(l.resolve),
	}
	var files []protoreflect.FileDescriptor
	err := guard(func() error {
		compiled, err := compiler.Compile(context.Background(), names...)
		for _, file := range compiled {
			if file != nil {
				files = append(files, file)
			}
		}
		return err
	})
	if err != nil && l.errors == 0 {
		l.errorf(schema.Position{File: "fulmar gen"}, "%s", err)
	}
	if l.errors > 0 {
		return nil
	}
	return l.collect(files, names)
}

// resolve reads a file for the compiler, and says of all its imports which cannot be had:
// the compiler ends at the first.
func (l *loading) resolve(name string) (protocompile.SearchResult, error) {
	text, err := l.read(name)
	switch {
	case errors.Is(err, errMissing):
		if known, found := wellKnown(name); found {
			return known, nil
		}
		fallthrough
	case err != nil:
		if !errors.Is(err, errReported) {
			l.errorf(schema.Position{File: l.shownName(name)}, "%s", err)
		}
		return protocompile.SearchResult{}, errReported
	}
	tree, err := parser.Parse(name, strings.NewReader(text), reporter.NewHandler(l.handler))
	if err != nil {
		if l.errors == 0 {
			return protocompile.SearchResult{}, err
		}
		return protocompile.SearchResult{}, errReported
	}
	before := l.errors
	for _, declaration := range tree.Decls {
		imported, ok := declaration.(*ast.ImportNode)
		if !ok {
			continue
		}
		what := imported.Name.AsString()
		_, _, err := l.find(what)
		if _, found := wellKnown(what); err != nil && !found {
			at := tree.NodeInfo(imported.Name).Start()
			l.errorf(schema.Position{File: l.shownName(name), Line: at.Line, Column: at.Col}, "import %q: %s", clip(what), err)
		}
	}
	if l.errors > before {
		return protocompile.SearchResult{}, errReported
	}
	return protocompile.SearchResult{AST: tree}, nil
}

// wellKnown returns a file that everybody has.
func wellKnown(name string) (protocompile.SearchResult, bool) {
	if name == gofeaturespb.File_google_protobuf_go_features_proto.Path() {
		return protocompile.SearchResult{Desc: gofeaturespb.File_google_protobuf_go_features_proto}, true
	}
	known, err := protocompile.WithStandardImports(protocompile.ResolverFunc(func(string) (protocompile.SearchResult, error) {
		return protocompile.SearchResult{}, errMissing
	})).FindFileByPath(name)
	return known, err == nil
}

// report keeps an error, and ends the compilation if no more are shown.
func (l *loading) report(err reporter.ErrorWithPos) error {
	if errors.Is(err, errReported) {
		return nil
	}
	l.errorf(l.positionOf(err), "%s", err.Unwrap())
	if l.errors > limits.IDLErrors {
		return errFull
	}
	return nil
}

func (l *loading) positionOf(err reporter.ErrorWithPos) schema.Position {
	at := err.GetPosition()
	return schema.Position{File: l.shownName(at.Filename), Line: at.Line, Column: at.Col}
}

func (l *loading) shownName(name string) string {
	if shown := l.shown[name]; shown != "" {
		return shown
	}
	return name
}

// collect returns files and what they import, imported ones first.
func (l *loading) collect(files []protoreflect.FileDescriptor, names []string) []*unit {
	named := map[string]bool{}
	for _, name := range names {
		named[name] = true
	}
	var units []*unit
	seen := map[string]bool{}
	var add func(file protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		plain, err := plainProto(file)
		if err != nil {
			l.errorf(schema.Position{File: l.shownName(file.Path())}, "%s", err)
			return
		}
		locations := file.SourceLocations()
		units = append(units, &unit{proto: plain, named: named[file.Path()], position: func(path ...int32) schema.Position {
			at := locations.ByPath(path)
			position := schema.Position{File: l.shownName(file.Path())}
			if at.Path != nil {
				position.Line, position.Column = at.StartLine+1, at.StartColumn+1
			}
			return position
		}})
	}
	for _, file := range files {
		add(file)
	}
	return units
}

// plainProto returns the description of a file as a generator gets it: options that only
// the file knows are bytes.
func plainProto(file protoreflect.FileDescriptor) (*descriptorpb.FileDescriptorProto, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(protoutil.ProtoFromFileDescriptor(file))
	if err != nil {
		return nil, err
	}
	plain := &descriptorpb.FileDescriptorProto{}
	return plain, proto.Unmarshal(b, plain)
}

// guard makes a panic of a library an error: a file from a stranger must not end the run
// without a word.
func guard(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("cannot be compiled, which is a defect of the compiler: %v", value)
		}
	}()
	return call()
}
