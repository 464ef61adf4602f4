package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// genOptions are the flags of "fulmar gen".
type genOptions struct {
	output        string
	includeDirs   []string
	packagePrefix string
	negativeIDs   bool
	implicitIDs   implicitIDs
	plainNames    bool
	namespaces    namespaces
}

// implicitIDs is the value of a flag, as cobra wants it.
type implicitIDs struct{ idl.ImplicitIDs }

func (i *implicitIDs) Set(text string) error {
	switch text {
	case "apache":
		i.ImplicitIDs = idl.ImplicitIDsApache
	case "thriftgo":
		i.ImplicitIDs = idl.ImplicitIDsThriftgo
	default:
		return errors.New("expected apache or thriftgo")
	}
	return nil
}

// Type is how the help calls the value.
func (i *implicitIDs) Type() string { return "apache|thriftgo" }

// String is empty as long as nothing was chosen, so that the help shows no
// default.
func (i *implicitIDs) String() string {
	return [...]string{"", "apache", "thriftgo"}[i.ImplicitIDs]
}

// namespaces is the value of a flag that may be given several times.
type namespaces map[string]string

func (n namespaces) Set(text string) error {
	old, other, found := strings.Cut(text, "=")
	if _, again := n[old]; again {
		return fmt.Errorf("%s is given twice", old)
	}
	if !found || old == "" || other == "" {
		return errors.New("expected old=new")
	}
	n[old] = other
	return nil
}

// Type is how the help calls the value.
func (n namespaces) Type() string { return "old=new" }

// String is empty, so that the help shows no default.
func (n namespaces) String() string { return "" }

func newGenCommand() *cobra.Command {
	options := genOptions{namespaces: namespaces{}}
	command := &cobra.Command{
		Use:   "gen [flags] file.thrift...",
		Short: "Generate Go code from Thrift files",
		Long: `Generate Go code from Thrift files and everything that they include.

Every Go namespace becomes a package, in a folder of that name below the output
folder; nothing outside of it is written. Nothing at all is written unless all
files are free of errors, and a file that is as it should be is not touched. A
file that fulmar gen did not write is never overwritten. One that an earlier run
made from one of the same definitions and that this run has no use for is
removed; files from other definitions stay.`,
		Example: "  fulmar gen -o gen -I idl idl/orders.thrift",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			if err := options.check(files); err != nil {
				return err
			}
			return generate(command, options, files)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&options.output, "output", "o", "gen", "output folder")
	flags.StringArrayVarP(&options.includeDirs, "include", "I", nil, "folder to look for included files in, after the folder of the including file (repeatable)")
	flags.StringVar(&options.packagePrefix, "package-prefix", "", "import path of the output folder (default: found from the nearest go.mod)")
	flags.BoolVar(&options.negativeIDs, "allow-negative-ids", false, "accept field ids below 1, as old definitions have them")
	flags.Var(&options.implicitIDs, "implicit-ids", "number fields without an id as another compiler does: Apache Thrift counts down from -1, thriftgo (Kitex) up from the field before (default: such fields are errors)")
	flags.Var(options.namespaces, "namespace", "call a namespace for Go otherwise, in all files that have it, for definitions that cannot be changed (repeatable)")
	flags.BoolVar(&options.plainNames, "ignore-initialisms", false, "leave words such as id and url as they are in Go names: UserId instead of UserID")
	return command
}

// check refuses empty names, which a shell makes of a variable that is not set:
// they would quietly mean the working directory.
func (o genOptions) check(files []string) error {
	switch {
	case o.output == "":
		return errors.New("--output is empty, expected the name of a folder")
	case slices.Contains(o.includeDirs, ""):
		return errors.New("--include is empty, expected the name of a folder")
	case slices.Contains(files, ""):
		return errors.New("a file name is empty")
	default:
		return nil
	}
}

func generate(command *cobra.Command, options genOptions, files []string) error {
	stderr := command.ErrOrStderr()
	fail := func(err error) error {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "fulmar gen: %s\n", strings.TrimSuffix(line, "\n"))
		}
		return errReported
	}
	if _, err := missingFolders(options.output); err != nil {
		return fail(err)
	}
	program, diagnostics := idl.Load(idl.Options{
		Files:            files,
		IncludeDirs:      options.includeDirs,
		AllowNegativeIDs: options.negativeIDs,
		ImplicitIDs:      options.implicitIDs.ImplicitIDs,
		Namespaces:       options.namespaces,
	})
	fmt.Fprint(stderr, diagnostics)
	if diagnostics.HasErrors() {
		return errReported
	}
	prefix := options.packagePrefix
	if prefix == "" {
		var err error
		if prefix, err = modulePrefix(options.output); err != nil {
			return fail(err)
		}
	}
	generated, diagnostics := emit.Generate(program, emit.Options{ImportPrefix: prefix, IgnoreInitialisms: options.plainNames})
	fmt.Fprint(stderr, diagnostics)
	if diagnostics.HasErrors() {
		return errReported
	}
	changes, err := writeFiles(options.output, generated)
	if err != nil {
		return fail(err)
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "fulmar gen: %s, %s (%d written, %d unchanged, %d removed)\n",
		plural(countPackages(generated), "package"), plural(len(generated), "file"),
		changes.written, len(generated)-changes.written, changes.removed)
	return err
}

func plural(count int, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", count, noun)
}

func countPackages(files []emit.File) int {
	folders := map[string]bool{}
	for _, file := range files {
		folders[path.Dir(file.Path)] = true
	}
	return len(folders)
}
