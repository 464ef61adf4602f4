package outfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// ModulePrefix returns the import path of a folder, which need not exist, from
// the nearest go.mod in it or above it; "" if there is none.
func ModulePrefix(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for root := folder; ; root = filepath.Dir(root) {
		name := filepath.Join(root, "go.mod")
		info, err := os.Stat(name)
		switch {
		case err == nil && !info.IsDir(): // the go command passes over folders as well
			content, err := readModule(name, info)
			if err != nil {
				return "", err
			}
			module := modulePath(content)
			if module == "" {
				return "", fmt.Errorf("%s: has no module line", name)
			}
			below, err := filepath.Rel(root, folder)
			return path.Join(module, filepath.ToSlash(below)), err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("%s: %w", name, bare(err))
		case root == filepath.Dir(root):
			return "", nil
		}
	}
}

// readModule returns the text of a go.mod. Opening a pipe would wait for its
// writer, and a device may have no end.
func readModule(name string, info fs.FileInfo) (string, error) {
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: is not a regular file", name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, bare(err))
	}
	return string(content), nil
}

// modulePath returns the module path that a go.mod declares, or "".
func modulePath(text string) string {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		if len(words) != 2 || words[0] != "module" {
			continue
		}
		if unquoted, err := strconv.Unquote(words[1]); err == nil {
			return unquoted
		}
		return words[1]
	}
	return ""
}
