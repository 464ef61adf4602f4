package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/fulmar-rpc/fulmar/internal/emit"
)

// changes counts what happened to the output folder.
type changes struct {
	written int
	removed int
}

// writeFiles brings the output folder up to date. New content is first written
// beside its place, all of it, and then renamed: when a disk is full, nothing
// has changed. Everything goes through an os.Root, so that no symbolic link
// below the output folder leads out of it.
func writeFiles(output string, files []emit.File) (done changes, err error) {
	if err := os.MkdirAll(output, 0o755); err != nil {
		return done, err
	}
	root, err := os.OpenRoot(output)
	if err != nil {
		return done, err
	}
	defer root.Close()
	staged := map[string]string{}
	defer func() {
		for _, temporary := range staged {
			root.Remove(temporary)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", output, err)
		}
	}()
	for _, file := range files {
		upToDate, err := holds(root, file)
		if err != nil {
			return done, err
		}
		if upToDate {
			continue
		}
		if err := stage(root, file, staged); err != nil {
			return done, err
		}
	}
	for _, file := range files {
		temporary, changed := staged[file.Path]
		if !changed {
			continue
		}
		if err := root.Rename(temporary, file.Path); err != nil {
			return done, err
		}
		delete(staged, file.Path)
		done.written++
	}
	done.removed, err = removeStale(root, files)
	return done, err
}

// holds says that a file is there already and as it should be. Anything but a
// regular file in its place is an error: a link may lead anywhere, and opening
// a pipe would wait for its writer.
func holds(root *os.Root, file emit.File) (bool, error) {
	info, err := root.Lstat(file.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s: is not a regular file", file.Path)
	}
	content, err := root.ReadFile(file.Path)
	return bytes.Equal(content, file.Content), err
}

// stage writes a file beside its place and notes in staged under which name.
func stage(root *os.Root, file emit.File, staged map[string]string) error {
	folder, name := path.Split(file.Path)
	if err := root.MkdirAll(path.Clean(folder), 0o755); err != nil {
		return err
	}
	// Go ignores names that start with a dot.
	temporary := folder + "." + name + "." + rand.Text()
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	staged[file.Path] = temporary
	_, err = out.Write(file.Content)
	return errors.Join(err, out.Close())
}

// removeStale removes files in the folders of files that were generated from
// the same definitions and are not among them: what is left of a service that
// was deleted would not compile. Files from definitions that this run did not
// see stay, because another run may be there for them.
func removeStale(root *os.Root, files []emit.File) (removed int, err error) {
	current := map[string]bool{}
	headers := map[string]bool{}
	folders := map[string]bool{}
	for _, file := range files {
		folder := path.Dir(file.Path)
		current[file.Path] = true
		headers[folder+"\n"+firstLine(file.Content)] = true
		folders[folder] = true
	}
	for folder := range folders {
		entries, err := fs.ReadDir(root.FS(), folder)
		if err != nil {
			return removed, err
		}
		for _, entry := range entries {
			name := path.Join(folder, entry.Name())
			if current[name] || path.Ext(name) != ".go" || !entry.Type().IsRegular() {
				continue
			}
			content, err := root.ReadFile(name)
			if err != nil {
				return removed, err
			}
			if headers[folder+"\n"+firstLine(content)] {
				if err := root.Remove(name); err != nil {
					return removed, err
				}
				removed++
			}
		}
	}
	return removed, nil
}

func firstLine(content []byte) string {
	line, _, _ := bytes.Cut(content, []byte("\n"))
	return string(line)
}
