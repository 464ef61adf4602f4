// Command generate makes the messages and the service of connectconformance from the
// definitions in the suite's own module, at the version that go.mod pins. The code that the
// module has of them is internal to it, and where the module is only the go command knows.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// suite is the module that has the definitions.
const suite = "connectrpc.com/conformance"

func main() {
	output := flag.String("o", "", "output folder")
	flag.Parse()
	if err := run(*output); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(output string) error {
	if output == "" {
		return errors.New("want -o")
	}
	// Unlike go list -m, it fetches a module that is not there yet.
	download := exec.Command("go", "mod", "download", "-json", suite)
	download.Stderr = os.Stderr
	said, err := download.Output()
	if err != nil {
		return fmt.Errorf("go mod download %s: %w", suite, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(said, &module); err != nil || module.Dir == "" {
		return fmt.Errorf("go mod download %s does not say where the module is: %s", suite, said)
	}
	definitions := filepath.Join(module.Dir, "proto")
	arguments := []string{"gen", "-o", output, "-I", definitions}
	for _, name := range []string{"client_compat", "server_compat", "service"} {
		arguments = append(arguments, filepath.Join(definitions, "connectrpc", "conformance", "v1", name+".proto"))
	}
	gen := exec.Command("fulmar", arguments...)
	gen.Stdout, gen.Stderr = os.Stdout, os.Stderr
	if err := gen.Run(); err != nil {
		return fmt.Errorf("fulmar gen: %w", err)
	}
	return nil
}
