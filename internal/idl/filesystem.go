package idl

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// FileSystem is what loading needs of one. Names are separated by slashes.
type FileSystem interface {
	// RealPath returns the absolute name of an existing file or folder with all
	// symbolic links followed. If there is none, the error wraps
	// fs.ErrNotExist.
	RealPath(name string) (string, error)
	// ReadFile returns the content of a regular file, or an error if it is
	// longer than limit bytes.
	ReadFile(name string, limit int) ([]byte, error)
}

// errTooLong is what ReadFile fails with for a file beyond the limit.
var errTooLong = fmt.Errorf("too long (limit %d bytes in all files together)", limits.IDLBytes)

type operatingSystem struct{}

func (operatingSystem) RealPath(name string) (string, error) {
	absolute, err := filepath.Abs(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	return filepath.ToSlash(resolved), err
}

func (operatingSystem) ReadFile(name string, limit int) ([]byte, error) {
	name = filepath.FromSlash(name)
	// Looked at before it is opened: opening a pipe would wait for its writer.
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err == nil && len(content) > limit {
		return nil, errTooLong
	}
	return content, err
}

// Memory is a file system of files in memory, for tests: it maps names to
// contents. The working directory is "/".
type Memory map[string]string

// RealPath returns the name made absolute. A folder exists if a file is in it.
func (m Memory) RealPath(name string) (string, error) {
	absolute := path.Join("/", name)
	for file := range m {
		if file = path.Join("/", file); file == absolute || within(absolute, file) {
			return absolute, nil
		}
	}
	return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadFile returns the content of a file.
func (m Memory) ReadFile(name string, limit int) ([]byte, error) {
	for file, content := range m {
		if path.Join("/", file) != path.Join("/", name) {
			continue
		}
		if len(content) > limit {
			return nil, errTooLong
		}
		return []byte(content), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// within says that the folder holds the file or is the file itself. Both names
// are clean, and both absolute or both relative.
func within(folder, file string) bool {
	return folder == file || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}
