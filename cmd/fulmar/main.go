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
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// errReported is what a command returns that has said on standard error what
// went wrong.
var errReported = errors.New("reported")

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(arguments []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "fulmar",
		Short:         "The command line tool of the Fulmar RPC framework",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(newGenCommand(), newVersionCommand())
	command, err := root.ExecuteC()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return exitFailed
	default:
		fmt.Fprintf(stderr, "%s: %v\nRun '%s --help' for usage.\n", command.CommandPath(), err, command.CommandPath())
		return exitUsage
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "fulmar %s (%s %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
