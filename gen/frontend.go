package gen

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/outfolder"
)

// FrontEnd reads definitions in another language than Thrift, for Config.FrontEnds. It
// makes the messages; services are printed from the model as those in Thrift are.
type FrontEnd interface {
	// Reads reports whether it reads files of this name.
	Reads(name string) bool
	// Load reads files and all that they import. Nothing is generated if one of the
	// diagnostics is an error.
	Load(request LoadRequest) Loaded
}

// LoadRequest is what a front end needs of a Config.
type LoadRequest struct {
	// Files are those that the front end reads.
	Files []string
	// IncludeDirs and Namespaces are those of the Config.
	IncludeDirs []string
	Namespaces  map[string]string
	// ImportPrefix is the import path of the output folder, empty if it is not known.
	ImportPrefix string
}

// Loaded is what a front end has made of files.
type Loaded struct {
	// Diagnostics are about the files. They are shown sorted by position.
	Diagnostics []Diagnostic
	// Program has the services. It may be nil if a diagnostic is an error.
	Program *schema.Program
	// Files is the code for messages. Each begins with what FileHeader returns.
	Files []File
}

// File is a generated file.
type File struct {
	// Path is slash separated and relative to the output folder.
	Path    string
	Content []byte
}

// FileHeader returns the first line of each file that is generated from a definition. By
// it a later run knows which files are its to replace and to remove.
func FileHeader(of *schema.File) string { return emit.HeaderOf(of) }

// frontEndFor returns what reads a file, nil if Thrift does.
func (c Config) frontEndFor(name string) FrontEnd {
	for _, one := range c.FrontEnds {
		if one.Reads(name) {
			return one
		}
	}
	return nil
}

// split returns the files in Thrift, and those that each front end reads.
func (c Config) split() (thrift []string, others map[FrontEnd][]string) {
	others = map[FrontEnd][]string{}
	for _, name := range c.Files {
		if one := c.frontEndFor(name); one != nil {
			others[one] = append(others[one], name)
		} else {
			thrift = append(thrift, name)
		}
	}
	return thrift, others
}

// checkFrontEnds says what of a Config cannot be had for the languages of its files.
func (c Config) checkFrontEnds(plugins int) error {
	thrift, others := c.split()
	var problems []error
	for _, name := range thrift {
		if path.Ext(filepath.ToSlash(name)) == ".proto" {
			problems = append(problems, fmt.Errorf("%s: this generator does not read Protobuf, fulmar gen does", name))
		}
	}
	if len(others) == 0 {
		return errors.Join(problems...)
	}
	if plugins > 0 {
		problems = append(problems, errors.New("plugins see definitions in Thrift only: generate the others in a run without plugins"))
	}
	if len(thrift) == 0 {
		for name, set := range map[string]bool{
			"views": c.Views, "view-methods": c.ViewMethods != "", "shape": c.Shape != "", "reuse": c.Reuse,
			"keep-unknown": c.KeepUnknown, "unique-sets": c.UniqueSets, "json-enums": c.EnumsAsText, "no-methods": c.NoMethods, "kitex-nested": c.KitexNested,
			"allow-negative-ids": c.AllowNegativeIDs, "implicit-ids": c.ImplicitIDs != "",
		} {
			if set {
				problems = append(problems, fmt.Errorf("--%s is for definitions in Thrift, and there is none", name))
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// importPrefix is the import path of the output folder, empty if it is not known.
func (r *run) importPrefix() (string, error) {
	if r.config.PackagePrefix != "" {
		return r.config.PackagePrefix, nil
	}
	return outfolder.ModulePrefix(r.config.Output)
}

// loadOthers generates from the files that are not in Thrift.
func (r *run) loadOthers(others map[FrontEnd][]string, prefix string) ([]emit.File, error) {
	var files []emit.File
	for _, one := range r.config.FrontEnds { // not the map: it has no order
		if len(others[one]) == 0 {
			continue
		}
		loaded := one.Load(LoadRequest{
			Files: others[one], IncludeDirs: r.config.IncludeDirs, Namespaces: r.config.Namespaces, ImportPrefix: prefix,
		})
		slices.SortStableFunc(loaded.Diagnostics, func(a, b Diagnostic) int { return comparePositions(a.Position, b.Position) })
		r.result.Diagnostics = append(r.result.Diagnostics, loaded.Diagnostics...)
		if slices.ContainsFunc(loaded.Diagnostics, func(d Diagnostic) bool { return !d.Warning }) {
			return nil, ErrInvalid
		}
		printed, diagnostics := emit.Generate(loaded.Program, emit.Options{ImportPrefix: prefix})
		if err := r.diagnose(diagnostics); err != nil {
			return nil, err
		}
		for _, file := range loaded.Files {
			files = append(files, emit.File{Path: file.Path, Parts: [][]byte{file.Content}})
		}
		files = append(files, printed...)
	}
	return files, nil
}

// together puts what was generated from Thrift before the rest. A package cannot be made
// of both, because each would choose names that the other has.
func (r *run) together(thrift, others []emit.File) ([]emit.File, error) {
	folders := map[string]bool{}
	for _, file := range thrift {
		folders[strings.ToLower(path.Dir(file.Path))] = true
	}
	for _, file := range others {
		folder := path.Dir(file.Path)
		if !folders[strings.ToLower(folder)] {
			continue
		}
		err := r.diagnose(idl.Diagnostics{{
			Position: schema.Position{File: file.Path},
			Message:  fmt.Sprintf("Go package %s: is that of a definition in Thrift too; give one another name with --namespace", folder),
		}})
		return nil, err
	}
	return slices.Concat(thrift, others), nil
}

// write brings the output folder up to date, or compares it.
func (r *run) write(files []emit.File) error {
	r.result.Files = len(files)
	folders := map[string]bool{}
	for _, file := range files {
		folders[path.Dir(file.Path)] = true
	}
	r.result.Packages = len(folders)
	if r.config.Check {
		return r.compare(files)
	}
	return r.writing(func(ctx context.Context) error {
		changes, err := outfolder.Write(ctx, r.config.Output, files)
		r.result.Written, r.result.Removed = changes.Written, changes.Removed
		return err
	})
}
