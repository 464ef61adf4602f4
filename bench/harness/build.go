package harness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// inC tells whether a program is one file in C.
func (p Program) inC() bool { return filepath.Ext(p.Package) == ".c" }

// binary is the file name of a program: its package, with the module in front
// of it where that is not the benchmark's own, and a mark behind it if it is
// built from another tree.
func (p Program) binary() string {
	name := strings.TrimSuffix(filepath.ToSlash(filepath.Join(p.Module, p.Package)), ".c")
	return p.name(strings.ReplaceAll(strings.TrimPrefix(name, "bench/"), "/", "-"))
}

// Build builds the programs of a suite into a folder.
func Build(ctx context.Context, root string, suite Suite, folder string, log io.Writer) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	programs := slices.Clone(suite.Programs)
	if suite.Client.Package != "" {
		programs = append(programs, suite.Client)
	}
	for _, program := range programs {
		command, err := program.build(ctx, filepath.Join(folder, program.binary()))
		if err != nil {
			return err
		}
		command.Dir = filepath.Join(cmp.Or(program.Root, root), program.Module)
		command.Stdout, command.Stderr = log, log
		if err := command.Run(); err != nil {
			return fmt.Errorf("building %s of module %s: %w", program.Package, program.Module, err)
		}
	}
	return nil
}

// build returns the command that builds a program, to be run in its module.
func (p Program) build(ctx context.Context, binary string) (*exec.Cmd, error) {
	if !p.inC() {
		command := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "build", "-o", binary, "./"+p.Package)
		command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		return command, nil
	}
	compiler := cmp.Or(os.Getenv("CC"), "cc")
	found, err := exec.LookPath(compiler)
	if err != nil {
		return nil, fmt.Errorf("%s is in C, and there is no C compiler %q: install one, or name yours in the variable CC: %w", p.Package, compiler, err)
	}
	return exec.CommandContext(ctx, found, "-std=c11", "-O2", "-Wall", "-Wextra", "-o", binary, p.Package), nil
}
