package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tempOwned marks the processes that tests start. Their temporary files are in
// the folder of the tests, and some of them are killed before they can tidy up a
// folder of their own.
const tempOwned = "FULMAR_TESTS_OWN_TEMP"

// tempFolder holds the temporary files of this process and of those that it
// starts. Other programs have nothing there, so what is left is the tests'.
type tempFolder struct {
	path   string
	before map[string]string
}

// newTempFolder makes a folder and sends temporary files there. Within another
// one it does nothing.
func newTempFolder() (*tempFolder, error) {
	if os.Getenv(tempOwned) != "" {
		return &tempFolder{}, nil
	}
	// A short name: some tests keep sockets there, whose paths have at most 107
	// bytes.
	path, err := os.MkdirTemp("", "t")
	if err != nil {
		return nil, fmt.Errorf("a folder for temporary files: %w", err)
	}
	f := &tempFolder{path: path, before: map[string]string{}}
	// Others may look into the folder that it stands for; some tests start
	// programs as another user.
	if err := os.Chmod(path, 0o755); err != nil {
		f.remove()
		return nil, fmt.Errorf("a folder for temporary files: %w", err)
	}
	// The first is that of Unix, the next two are those of Windows.
	for _, name := range []string{"TMPDIR", "TMP", "TEMP", tempOwned} {
		f.before[name] = os.Getenv(name)
		if err := os.Setenv(name, path); err != nil {
			f.remove()
			return nil, fmt.Errorf("a folder for temporary files: %w", err)
		}
	}
	return f, nil
}

// check returns an error that names what is left.
func (f *tempFolder) check() error {
	if f.path == "" {
		return nil
	}
	var left []string
	err := filepath.WalkDir(f.path, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != f.path {
			left = append(left, strings.TrimPrefix(path, f.path+string(filepath.Separator)))
		}
		return err
	})
	if err == nil && len(left) > 0 {
		const shown = 10
		err = fmt.Errorf("temporary files: %d left: %s", len(left), strings.Join(left[:min(len(left), shown)], ", "))
	}
	return err
}

func (f *tempFolder) remove() {
	if f.path == "" {
		return
	}
	for name, value := range f.before {
		if value == "" {
			_ = os.Unsetenv(name)
		} else {
			_ = os.Setenv(name, value)
		}
	}
	_ = os.RemoveAll(f.path)
}
