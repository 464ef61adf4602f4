// Package outfolder brings the folder that code is generated into up to date, or
// says what of it is not. It never touches what was not generated, and nothing
// outside of the folder.
package outfolder

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/emit"
)

// Changes counts what happened to the output folder.
type Changes struct {
	Written int
	Removed int
}

// State is what is wrong with a file.
type State string

// The states, as they complete a sentence that begins with the file's name.
const (
	StateStale   State = "differs from what the definitions give"
	StateMissing State = "is missing"
	StateExtra   State = "is left over, nothing generates it any more"
)

// Difference is a file that Write would write or remove.
type Difference struct {
	// Name is the path of the file, with the output folder in front.
	Name  string
	State State
}

// folder is the one that files are generated into. Everything goes
// through an os.Root, so that no symbolic link below the folder leads out of
// it. Names are slash separated and relative to the folder.
type folder struct {
	name string
	root *os.Root
	// staged maps the names of files to those under which their new content
	// waits.
	staged map[string]string
	// missing are the folders that were not there, outer ones first.
	missing []string
}

// Write brings the output folder up to date. All files are looked at
// before the first is written, and new content is first written beside its
// place, all of it, and then renamed: when a file is in the way, a disk is full or
// ctx ends before that, nothing has changed. Renaming is not stopped by ctx.
func Write(ctx context.Context, output string, files []emit.File) (done Changes, err error) {
	missing, err := MissingFolders(output)
	if err != nil {
		return done, err
	}
	defer func() {
		if err != nil {
			// Those that hold something are kept by the operating system.
			for _, folder := range missing {
				os.Remove(folder)
			}
		}
	}()
	if err := os.MkdirAll(output, 0o755); err != nil {
		return done, fmt.Errorf("--output %s: %w", output, bare(err))
	}
	root, err := os.OpenRoot(output)
	if err != nil {
		return done, fmt.Errorf("--output %s: %w", output, bare(err))
	}
	defer root.Close()
	o := &folder{name: output, root: root, staged: map[string]string{}}
	defer func() {
		o.discard()
		if err != nil {
			o.removeFolders()
		}
	}()
	outdated, err := o.outdated(files)
	if err != nil {
		return done, err
	}
	for _, file := range outdated {
		if err := o.stage(ctx, file); err != nil {
			return done, err
		}
	}
	if ctx.Err() != nil {
		return done, o.stopped(ctx)
	}
	for _, file := range outdated {
		if err := root.Rename(o.staged[file.Path], file.Path); err != nil {
			return done, o.failure(file.Path, err)
		}
		delete(o.staged, file.Path)
		done.Written++
	}
	o.removeAbandoned(files)
	done.Removed, err = o.removeLeftovers(files)
	return done, err
}

// MissingFolders returns the folders that the output folder needs and that are
// not there, inner ones first. It fails if one of them is a file.
func MissingFolders(output string) (missing []string, err error) {
	for folder := filepath.Clean(output); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return nil, fmt.Errorf("--output %s: %s is a file, expected a folder", output, folder)
		case err == nil || folder == filepath.Dir(folder):
			return missing, nil
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, folder)
		}
	}
}

// failure is an error about a file or folder.
func (o *folder) failure(name string, err error) error {
	return fmt.Errorf("%s: %w", filepath.Join(o.name, filepath.FromSlash(name)), bare(err))
}

// bare returns the cause of an error of package os without the system call and
// the name in front of it, which is relative to the output folder there.
func bare(err error) error {
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err
	}
	if linkError := (*os.LinkError)(nil); errors.As(err, &linkError) {
		return linkError.Err
	}
	return err
}

// outdated returns the files that have to be written, or everything that is in
// the way of one.
func (o *folder) outdated(files []emit.File) ([]emit.File, error) {
	var outdated []emit.File
	var failures []error
	usable := map[string]bool{}
	for _, file := range files {
		folder := path.Dir(file.Path)
		known, seen := usable[folder]
		if !seen {
			err := o.checkFolder(folder)
			known = err == nil
			usable[folder] = known
			failures = append(failures, err)
		}
		if !known {
			continue
		}
		upToDate, err := o.holds(file)
		if err != nil {
			failures = append(failures, o.failure(file.Path, err))
		} else if !upToDate {
			outdated = append(outdated, file)
		}
	}
	return outdated, errors.Join(failures...)
}

// checkFolder says what keeps files from being written into a folder, and notes
// what is missing of it.
func (o *folder) checkFolder(folder string) error {
	elements := strings.Split(folder, "/")
	for i := range elements {
		name := path.Join(elements[:i+1]...)
		info, err := o.root.Stat(name)
		if err == nil && info.IsDir() {
			continue
		}
		if err == nil {
			return o.failure(name, errors.New("is not a folder"))
		}
		link, linkErr := o.root.Lstat(name)
		switch {
		case errors.Is(linkErr, fs.ErrNotExist):
			if !slices.Contains(o.missing, name) {
				o.missing = append(o.missing, name)
			}
		case linkErr == nil && link.Mode()&fs.ModeSymlink != 0:
			return o.failure(name, errors.New("is a symbolic link to what is no folder inside of the output folder"))
		default:
			return o.failure(name, err)
		}
	}
	return nil
}

// holds says that a file is there already and as it should be. What fulmar gen
// did not write is not its to replace. Anything but a regular file is an error
// as well: a link may lead anywhere, and opening a pipe would wait for its
// writer.
func (o *folder) holds(file emit.File) (bool, error) {
	info, err := o.root.Lstat(file.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, errors.New("is not a regular file")
	}
	header, err := o.beginning(file.Path, len(emit.Header))
	if err != nil {
		return false, err
	}
	if string(header) != emit.Header {
		return false, errors.New("was not written by fulmar gen and is not overwritten; move it away or choose another output folder (-o)")
	}
	if info.Size() != file.Size() {
		return false, nil
	}
	return o.equals(file)
}

// equals says that a file has the content. It looks at a part after the other: a whole
// file more would be in memory otherwise.
func (o *folder) equals(file emit.File) (bool, error) {
	in, err := o.root.Open(file.Path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	var buf []byte
	for _, part := range file.Parts {
		buf = slices.Grow(buf[:0], len(part))[:len(part)]
		_, err := io.ReadFull(in, buf)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil || !bytes.Equal(buf, part) {
			return false, err
		}
	}
	return true, nil
}

// beginning returns the first limit bytes of a file.
func (o *folder) beginning(name string, limit int) ([]byte, error) {
	in, err := o.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, int64(limit)))
}

// stopped is the error of a run that was ended from outside.
func (o *folder) stopped(ctx context.Context) error {
	return fmt.Errorf("--output %s: nothing was changed: %w", o.name, context.Cause(ctx))
}

// stagedPrefix begins the names of files that wait beside their places. Those that are
// older than abandonedAfter belong to a run that was killed: no other takes a minute.
const (
	stagedPrefix   = ".fulmar."
	stagedLetters  = 26 // of rand.Text, behind the prefix
	abandonedAfter = time.Hour
)

// removeAbandoned removes what runs that were killed have left beside files. That it
// cannot is no reason to fail: nothing reads it.
func (o *folder) removeAbandoned(files []emit.File) {
	folders := map[string]bool{}
	for _, file := range files {
		folders[path.Dir(file.Path)] = true
	}
	for folder := range folders {
		entries, err := fs.ReadDir(o.root.FS(), folder)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			random, staged := strings.CutPrefix(entry.Name(), stagedPrefix)
			if !staged || len(random) != stagedLetters || !entry.Type().IsRegular() {
				continue
			}
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > abandonedAfter {
				o.root.Remove(path.Join(folder, entry.Name()))
			}
		}
	}
}

// stage writes a file beside its place and notes under which name.
func (o *folder) stage(ctx context.Context, file emit.File) error {
	if ctx.Err() != nil {
		return o.stopped(ctx)
	}
	folder := path.Dir(file.Path)
	if err := o.root.MkdirAll(folder, 0o755); err != nil {
		return o.failure(folder, err)
	}
	// Go ignores names that start with a dot. The name of the file is not part
	// of it, because it may be as long as a name can be.
	temporary := path.Join(folder, stagedPrefix+rand.Text())
	out, err := o.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return o.failure(file.Path, err)
	}
	o.staged[file.Path] = temporary
	for _, part := range file.Parts {
		if _, err = out.Write(part); err != nil {
			break
		}
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return o.failure(file.Path, err)
	}
	return nil
}

// discard removes what was staged and has not come to its place.
func (o *folder) discard() {
	for _, temporary := range o.staged {
		o.root.Remove(temporary)
	}
}

// removeFolders removes the folders that were made for files that could not be
// written. Those that hold something are kept by the operating system.
func (o *folder) removeFolders() {
	for _, folder := range slices.Backward(o.missing) {
		o.root.Remove(folder)
	}
}

// Compare returns what Write would do, sorted by name, and does nothing. It
// fails where Write would because of what is in its way.
func Compare(output string, files []emit.File) (differences []Difference, err error) {
	missing, err := MissingFolders(output)
	if err != nil {
		return nil, err
	}
	add := func(name string, state State) {
		differences = append(differences, Difference{filepath.Join(output, filepath.FromSlash(name)), state})
	}
	defer func() {
		slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	}()
	if len(missing) > 0 {
		for _, file := range files {
			add(file.Path, StateMissing)
		}
		return differences, nil
	}
	root, err := os.OpenRoot(output)
	if err != nil {
		return nil, fmt.Errorf("--output %s: %w", output, bare(err))
	}
	defer root.Close()
	o := &folder{name: output, root: root}
	outdated, err := o.outdated(files)
	if err != nil {
		return nil, err
	}
	for _, file := range outdated {
		if _, err := root.Lstat(file.Path); errors.Is(err, fs.ErrNotExist) {
			add(file.Path, StateMissing)
		} else {
			add(file.Path, StateStale)
		}
	}
	leftovers, err := o.leftovers(files)
	for _, name := range leftovers {
		add(name, StateExtra)
	}
	return differences, err
}

// removeLeftovers removes them: what is left of a service that was deleted would
// not compile.
func (o *folder) removeLeftovers(files []emit.File) (removed int, err error) {
	leftovers, err := o.leftovers(files)
	for _, name := range leftovers {
		if err := o.root.Remove(name); err != nil {
			return removed, o.failure(name, err)
		}
		removed++
	}
	return removed, err
}

// leftovers returns files in the folders of files that were generated from the
// same definitions and are not among them. Files from definitions that this run
// did not see are none, because another run may be there for them.
func (o *folder) leftovers(files []emit.File) (names []string, err error) {
	current := map[string]bool{}
	headers := map[string]bool{}
	folders := map[string]bool{}
	longest := 0
	for _, file := range files {
		folder, header := path.Dir(file.Path), firstLine(file.Parts[0])
		current[file.Path] = true
		headers[folder+"\n"+header] = true
		folders[folder] = true
		longest = max(longest, len(header))
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		entries, err := fs.ReadDir(o.root.FS(), folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return names, o.failure(folder, err)
		}
		for _, entry := range entries {
			name := path.Join(folder, entry.Name())
			if current[name] || path.Ext(name) != ".go" || !entry.Type().IsRegular() {
				continue
			}
			content, err := o.beginning(name, longest+len("\r\n"))
			if err != nil {
				return names, o.failure(name, err)
			}
			if headers[folder+"\n"+firstLine(content)] {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// firstLine returns a line without its end, which may be that of Windows.
func firstLine(content []byte) string {
	line, _, _ := bytes.Cut(content, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r")))
}
