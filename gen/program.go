package gen

import (
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/fulmar-rpc/fulmar/gen/schema"
	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/pluginwire"
)

// External returns a plugin whose work is done elsewhere: exchange takes the
// model and returns the answer, both as docs/protocol/plugin.md describes them.
// The answer may be anything: it is checked. It must not be changed afterwards.
// It is how "fulmar gen --plugin" reaches programs.
func External(name string, options map[string]string, exchange func(request []byte) (response []byte, err error)) Plugin {
	return &external{name: name, options: maps.Clone(options), exchange: exchange}
}

type external struct {
	name     string
	options  map[string]string
	exchange func([]byte) ([]byte, error)
}

var _ Plugin = (*external)(nil)

func (e *external) Name() string { return e.name }

func (e *external) Transform(*Model) error { return nil }

func (e *external) Generate(output *Output) error {
	header := pluginwire.Request{Generator: "fulmar gen for Fulmar v" + emit.RuntimeVersion, Plugin: e.name, Options: e.options}
	request, err := pluginwire.EncodeRequest(header, output.Program())
	if err != nil {
		return err
	}
	text, err := e.exchange(request)
	if err != nil {
		return err
	}
	response, err := pluginwire.ParseResponse(text)
	if err != nil {
		return err
	}
	return apply(response, output)
}

// apply does with an answer what a plugin in the process does with its calls.
func apply(response pluginwire.Response, output *Output) error {
	for _, one := range response.Diagnostics {
		position := pluginwire.DecodePosition(one.Position)
		if one.Severity == pluginwire.SeverityWarning {
			output.Warningf(position, "%s", one.Message)
		} else {
			output.Errorf(position, "%s", one.Message)
		}
	}
	targets := pluginwire.NewTargets(output.Program())
	for i, one := range response.Files {
		file, err := targets.File(one.File)
		if err != nil {
			return fmt.Errorf("response: files %d: %w", i, err)
		}
		output.AddFile(file, one.Suffix, one.Text, one.Imports.List()...)
	}
	for i, one := range response.Insertions {
		of, err := targets.Of(one)
		if err != nil {
			return fmt.Errorf("response: insertions %d: %w", i, err)
		}
		output.insert(emit.Point(one.Point), of, one.Text, one.Imports.List())
	}
	return nil
}

// PluginMain is the main function of a program that "fulmar gen --plugin" starts:
// it reads the model from stdin, calls Generate of the plugin that build returns
// for the options of the user, and writes what that adds to stdout. It returns
// the exit code: 0, or 1 after an error, which stands on stderr. Errors about
// definitions are part of the answer.
func PluginMain(stdin io.Reader, stdout, stderr io.Writer, build func(options map[string]string) (Plugin, error)) int {
	if err := answer(stdin, stdout, build); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return 0
}

func answer(stdin io.Reader, stdout io.Writer, build func(options map[string]string) (Plugin, error)) error {
	text, err := io.ReadAll(io.LimitReader(stdin, limits.PluginRequestBytes+2))
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if len(text) == 0 {
		return errors.New("there is no request on standard input: this program is started by fulmar gen --plugin")
	}
	if len(text) > limits.PluginRequestBytes+1 {
		return fmt.Errorf("plugin request: too long (limit %d bytes)", limits.PluginRequestBytes)
	}
	request, program, err := pluginwire.DecodeRequest(text)
	if err != nil {
		return err
	}
	var plugin Plugin
	err = guard(func() (err error) { plugin, err = build(request.Options); return err })
	if err != nil {
		return err
	}
	var response pluginwire.Response
	output := collect(request.Plugin, program, &response)
	if err := guard(func() error { return plugin.Generate(output) }); err != nil {
		return err
	}
	for _, one := range output.list {
		severity := pluginwire.SeverityError
		if one.Warning {
			severity = pluginwire.SeverityWarning
		}
		response.Diagnostics = append(response.Diagnostics, pluginwire.Diagnostic{
			Severity: severity, Position: pluginwire.EncodePosition(one.Position), Message: one.Message,
		})
	}
	encoded, err := pluginwire.EncodeResponse(response)
	if err != nil {
		return err
	}
	_, err = stdout.Write(encoded)
	return err
}

// collect returns an output that keeps what is added in a response; it is checked
// by who asked for it.
func collect(name string, program *schema.Program, response *pluginwire.Response) *Output {
	targets := pluginwire.NewTargets(program)
	refer := func(of any) (pluginwire.Insertion, error) {
		var insertion pluginwire.Insertion
		err := targets.Refer(&insertion, of)
		return insertion, err
	}
	return &Output{
		report:  report{plugin: name, bare: true},
		program: program,
		add: func(addition emit.Addition) error {
			insertion, err := refer(addition.Of)
			if err != nil {
				return err
			}
			insertion.Point, insertion.Text, insertion.Imports = string(addition.Point), addition.Text, pluginwire.ImportsOf(addition.Imports)
			response.Insertions = append(response.Insertions, insertion)
			return nil
		},
		addFile: func(file *schema.File, suffix, text string, imports []schema.Import) error {
			insertion, err := refer(file)
			if err != nil {
				return err
			}
			response.Files = append(response.Files, pluginwire.AddedFile{
				File: *insertion.File, Suffix: suffix, Text: text, Imports: pluginwire.ImportsOf(imports),
			})
			return nil
		},
	}
}
