// Command fulmar is the command line tool of Fulmar. "fulmar gen" turns
// interface definitions into Go code.
//
// It exits with 1 if it could not do what it was asked, after saying why on
// standard error, and with 2 if it was not asked properly.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fulmar-rpc/fulmar/internal/emit"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// errReported is what a command returns that has said on standard error what
// went wrong.
var errReported = errors.New("reported")

// memoryBytes is from where on the memory of the process is collected more often than it
// doubles, unless GOMEMLIMIT says otherwise: definitions that become some 100 MiB of code
// would take twice that without need.
const memoryBytes = 768 << 20

func main() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryBytes)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(arguments []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "fulmar",
		Short:         "The command line tool of the Fulmar RPC framework",
		Version:       versionText(debug.ReadBuildInfo()),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newGenCommand(arguments), newVersionCommand())
	command, err := root.ExecuteC()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return exitFailed
	case isWriteError(err):
		fmt.Fprintf(stderr, "%s: %v\n", command.CommandPath(), err)
		return exitFailed
	default:
		fmt.Fprintf(stderr, "%s: %v\nRun '%s --help' for usage.\n", command.CommandPath(), err, command.CommandPath())
		return exitUsage
	}
}

// isWriteError says that standard output could not take what was to be said.
func isWriteError(err error) bool {
	pathError := (*fs.PathError)(nil)
	return errors.As(err, &pathError)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool, as --version does",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), command.Root().Version)
			return err
		},
	}
}

// versionText tells what this tool was built from, and which Fulmar in a go.mod
// its output compiles with.
func versionText(info *debug.BuildInfo, known bool) string {
	version := "of unknown version"
	if known {
		version = info.Main.Version
		for _, setting := range info.Settings {
			// Builds in a clone have no version, but a commit.
			if setting.Key == "vcs.revision" && version == "(devel)" {
				version += " " + setting.Value
			}
		}
	}
	return fmt.Sprintf("fulmar %s (%s %s/%s), generates code for Fulmar v%s or newer",
		version, runtime.Version(), runtime.GOOS, runtime.GOARCH, emit.RuntimeVersion)
}
