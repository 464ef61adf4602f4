// Command generate is fulmar gen with two plugins in it: one of this module, and
// one that is also a program.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/fulmar-rpc/fulmar/contrib/plugins/validate"
	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

func main() {
	validation, err := validate.New(nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(gen.Main(os.Args, os.Stdout, os.Stderr, secrets{}, validation))
}

// secrets keeps fields with the annotation (secret) out of JSON and of logs.
type secrets struct{}

func (secrets) Name() string { return "secrets" }

// Transform gives the fields a tag, as if the definition had one.
func (secrets) Transform(model *gen.Model) error {
	for _, file := range model.Program.Files {
		for _, s := range file.Structs {
			for _, field := range s.Fields {
				if !secret(field) {
					continue
				}
				if field.Requiredness == schema.RequirednessRequired {
					model.Errorf(field.Position, "field %s: a secret cannot be required", field.Name)
				}
				field.Annotations = append(field.Annotations, schema.Annotation{Key: "go.tag", Value: `json:"-"`, Position: field.Position})
			}
		}
	}
	return nil
}

// Generate adds a method that package log/slog asks for what to print.
func (secrets) Generate(output *gen.Output) error {
	for _, file := range output.Program().Files {
		for _, s := range file.Structs {
			var shown []string
			for _, field := range s.Fields {
				if !secret(field) {
					shown = append(shown, fmt.Sprintf("slog.Any(%q, s.%s)", field.Name, field.GoName))
				}
			}
			if len(shown) < len(s.Fields) {
				output.AfterStruct(s, fmt.Sprintf("// LogValue leaves secrets out.\nfunc (s *%s) LogValue() slog.Value {\nreturn slog.GroupValue(%s)\n}", s.GoName, strings.Join(shown, ", ")),
					schema.Import{Name: "slog", Path: "log/slog"})
			}
		}
	}
	return nil
}

func secret(field *schema.Field) bool {
	_, found := field.Annotations.Get("secret")
	return found
}
