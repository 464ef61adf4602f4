// Command copy copies the Go files of a folder, with the imports of what Kitex's tool
// generated replaced by those of what fulmar gen did.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: copy from to")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "copy:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	names, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		const module = "github.com/fulmar-rpc/fulmar/test/kitexshape/gen/"
		content = bytes.ReplaceAll(content, []byte(module+"kitex/"), []byte(module+"fulmar/"))
		if err := os.WriteFile(filepath.Join(to, filepath.Base(name)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
