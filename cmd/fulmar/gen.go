package main

import (
	"errors"
	"flag"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fulmar-rpc/fulmar/cmd/fulmar/protofile"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// genOptions are the flags of "fulmar gen".
type genOptions struct {
	gen.Config
	plugins       []string
	protobuf      protofile.FrontEnd
	pluginTimeout time.Duration
}

func newGenCommand(arguments []string) *cobra.Command {
	var options genOptions
	command := &cobra.Command{
		Use:   "gen [flags] file.thrift|file.proto...",
		Short: "Generate Go code from Thrift and Protobuf files",
		Long: `Generate Go code from Thrift and Protobuf files and everything that they include.

Every Go namespace becomes a package, in a folder of that name below the output
folder; nothing outside of it is written. Nothing at all is written unless all
files are free of errors, nor when a disk is full or the run is interrupted
(Ctrl-C), and a file that is as it should be is not touched. A file that fulmar
gen did not write is never overwritten. One that an earlier run made from one of
the same definitions and that this run has no use for is removed; files from
other definitions stay.

A run that writes ends with the line that makes go generate repeat it. With
--check nothing is written: files that differ, are missing or are left over are
listed, and the exit code is 1 if there are any.

Imports of .proto files are relative to the folders of -I, or to the working
directory without one. Their packages are those that go_package names below the
import path of the output folder; files without it are in folders called like
their package. Imported files whose go_package is elsewhere have code there.
Neither protoc nor a plugin of it is needed.

--plugin mock runs the program fulmar-gen-mock of the PATH, which may add to what
is generated; --plugin mock=key=value,key=value gives it options. Several run in
the order of the flags. The same plugins have to be given each time: what one
added is removed by a run without it.`,
		Example: `  fulmar gen -o gen -I idl idl/orders.thrift
  fulmar gen --plugin mock --plugin validate idl/orders.thrift
  fulmar gen --check -o gen -I idl idl/orders.thrift`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			options.Files = files
			options.FrontEnds = []gen.FrontEnd{&options.protobuf}
			return generate(command, options, arguments)
		},
	}
	flags := command.Flags()
	bind(flags, &options.Config)
	flags.Var((*messagesValue)(&options.protobuf.ExistingMessages), "messages", "messages of .proto files: existing ones are where go_package says, and only services are generated (default: they are generated too)")
	flags.StringArrayVar(&options.plugins, "plugin", nil, "name of a plugin, and its options: name=key=value,... (repeatable)")
	flags.DurationVar(&options.pluginTimeout, "plugin-timeout", limits.PluginTime, "how long a plugin may take")
	return command
}

// messagesValue is the value of a flag with one word.
type messagesValue bool

var _ pflag.Value = (*messagesValue)(nil)

// Type is how help texts call the value.
func (v *messagesValue) Type() string { return "existing" }

// String is empty as long as nothing was chosen, so that help texts show no default.
func (v *messagesValue) String() string {
	if *v {
		return "existing"
	}
	return ""
}

// Set takes the word.
func (v *messagesValue) Set(text string) error {
	if text != "existing" {
		return errors.New("expected existing")
	}
	*v = true
	return nil
}

// bind adds the flags that every generator has. Those of one letter become short
// for those of the same value.
func bind(flags *pflag.FlagSet, config *gen.Config) {
	shared := flag.NewFlagSet("", flag.ContinueOnError)
	config.Bind(shared)
	short := map[flag.Value]string{}
	shared.VisitAll(func(one *flag.Flag) {
		if len(one.Name) == 1 {
			short[one.Value] = one.Name
		}
	})
	shared.VisitAll(func(one *flag.Flag) {
		if len(one.Name) > 1 {
			added := pflag.PFlagFromGoFlag(one)
			added.Shorthand = short[one.Value]
			flags.AddFlag(added)
		}
	})
}

func generate(command *cobra.Command, options genOptions, arguments []string) error {
	if err := options.Validate(); err != nil {
		return err
	}
	if options.pluginTimeout <= 0 {
		return errors.New("--plugin-timeout is not positive")
	}
	var plugins []gen.Plugin
	for _, text := range options.plugins {
		program, err := parsePlugin(text)
		if err != nil {
			return err
		}
		program.timeout, program.stderr = options.pluginTimeout, command.ErrOrStderr()
		plugins = append(plugins, program.plugin())
	}
	run := gen.Command{
		Name:   command.CommandPath(),
		Line:   append([]string{command.Root().Name()}, arguments...),
		Stdout: command.OutOrStdout(),
		Stderr: command.ErrOrStderr(),
	}
	if run.Run(options.Config, plugins...) != 0 {
		return errReported
	}
	return nil
}
