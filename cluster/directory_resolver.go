package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// directoryResolver finds the instances of one service in a Directory.
type directoryResolver struct{ root, folder string }

// directoryView is what a Resolve knows of the folder. It has one goroutine.
type directoryView struct {
	*directoryResolver
	files map[string]*directoryFile
	// changed is when the folder was last changed as it was read, read when that was,
	// zero if it has to be read, and looked when the files were looked at.
	changed      time.Time
	read, looked time.Time
	// doubtUntil is until when a file that was old from the beginning may be that of a
	// server which lives: the clock may have jumped since it was touched. Zero before the
	// folder was read.
	doubtUntil time.Time
	// problem is what was wrong when the folder was last looked at, and cut that it has more
	// in it than was read.
	problem error
	cut     bool
	// told is the last problem that was reported, and at when.
	told   string
	toldAt time.Time
}

// directoryFile is one file, as it was read.
type directoryFile struct {
	modified time.Time
	size     int64
	// seen is when it was last fresh by the clock of this process, which does not jump: the
	// one of the file says only that somebody has touched it. Zero if it was old from the
	// beginning and nobody has touched it since.
	seen     time.Time
	instance Instance
	// problem is why it counts for nothing, nil if it does.
	problem error
}

// Resolve looks at the folder until ctx ends.
func (r *directoryResolver) Resolve(ctx context.Context, deliver func([]Instance)) error {
	v := &directoryView{directoryResolver: r, files: map[string]*directoryFile{}}
	var last []Instance // nil before the first one
	for {
		now := time.Now()
		list := v.look(now)
		Report(ctx, v.news(list == nil, now))
		if list != nil && (last == nil || !reflect.DeepEqual(list, last)) {
			last = append([]Instance{}, list...)
			deliver(list)
		}
		if !wait(ctx, limits.DirectoryPoll) {
			return ctx.Err()
		}
	}
}

// look returns the instances that are there, by their addresses, nil if that is not known.
func (v *directoryView) look(now time.Time) (list []Instance) {
	info, err := v.check()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Nobody has registered yet, or nobody is there any more.
		clear(v.files)
		v.read, v.problem, v.cut = time.Time{}, nil, false
		return []Instance{}
	case err != nil:
		v.read, v.problem = time.Time{}, err
		return nil
	}
	// At the end of the doubt too: somebody may have touched a file since the last look.
	doubt := v.doubts(v.looked)
	whole := doubt || now.Sub(v.looked) >= limits.DirectoryLook
	if whole || v.read.IsZero() || !info.ModTime().Equal(v.changed) {
		// The time of the folder is taken before it is read: what changes meanwhile shows
		// at the next look, or by then if the clock of the file system is coarse.
		names, cut, err := readFolder(v.folder, isInstance)
		if err != nil {
			v.read, v.problem = time.Time{}, err
			return nil
		}
		v.changed, v.read, v.cut = info.ModTime(), now, cut
		if v.doubtUntil.IsZero() {
			v.doubtUntil = now.Add(limits.DirectoryRefresh + limits.DirectoryPoll)
		}
		if whole {
			v.looked = now
		}
		v.problem = v.readFiles(names, whole, now)
	}
	list = make([]Instance, 0, len(v.files))
	for _, file := range v.files {
		if file.problem == nil && !file.seen.IsZero() && now.Sub(file.seen) < limits.DirectoryDead {
			list = append(list, file.instance)
		}
	}
	if len(list) == 0 && (v.cut || v.doubts(now)) {
		return nil
	}
	slices.SortFunc(list, func(a, b Instance) int { return strings.Compare(a.Address, b.Address) })
	list = slices.CompactFunc(list, func(a, b Instance) bool { return a.Address == b.Address })
	return list
}

// doubts reports whether there are servers of which it is not known yet that they are dead:
// their files were old from the beginning, and they may touch them still. They get no calls
// until they do, because after a crash all files are like that. But if there are no others,
// that is no list of no instances, with which calls would fail: they wait.
func (v *directoryView) doubts(now time.Time) bool {
	if !now.Before(v.doubtUntil) {
		return false
	}
	for _, file := range v.files {
		if file.problem == nil && file.seen.IsZero() {
			return true
		}
	}
	return false
}

// news returns what is wrong, if it is another problem than the last: it is found again and
// again. While the instances are unknown it is said now and then, as by others that fail: of
// an empty list that was delivered before, silence says that it holds.
func (v *directoryView) news(unknown bool, now time.Time) error {
	if v.problem == nil {
		v.told = ""
		return nil
	}
	problem := fmt.Errorf("directory: %w", v.problem)
	if problem.Error() == v.told && (!unknown || now.Sub(v.toldAt) < limits.ResolvePauseMax) {
		return nil
	}
	v.told, v.toldAt = problem.Error(), now
	return problem
}

// check looks whether the folder is there and safe.
func (v *directoryView) check() (fs.FileInfo, error) {
	if err := checkFolder(v.root); err != nil {
		return nil, err
	}
	if err := checkFolder(v.folder); err != nil {
		return nil, err
	}
	return os.Stat(v.folder)
}

// readFiles reads the files that are new or have changed; all says to look at those that
// are known already.
func (v *directoryView) readFiles(names []string, all bool, now time.Time) error {
	var problems []error
	if v.cut {
		// Who is known is not gone because something else is there.
		names = slices.AppendSeq(names, maps.Keys(v.files))
		problems = append(problems, fmt.Errorf("%s has more than %d files of any kind; instances among the others are not found", v.folder, limits.DirectoryEntries))
	}
	slices.Sort(names) // so that the same problems are in the same order
	there := make(map[string]bool, len(names))
	for _, name := range slices.Compact(names) {
		if len(there) == limits.DirectoryFiles {
			problems = append(problems, fmt.Errorf("%s has more than %d files; the others are left out", v.folder, limits.DirectoryFiles))
			break
		}
		there[name] = true
		file := v.files[name]
		if file == nil || all || file.problem != nil {
			v.readFile(name, now)
		}
		if file = v.files[name]; file != nil && file.problem != nil {
			problems = append(problems, fmt.Errorf("%s is left out: %w", filepath.Join(v.folder, name), file.problem))
		}
	}
	for name := range v.files {
		if !there[name] {
			delete(v.files, name)
		}
	}
	if len(problems) > 3 {
		problems = append(problems[:3], fmt.Errorf("and %d others in %s", len(problems)-3, v.folder))
	}
	return errors.Join(problems...)
}

// readFile looks at one file, and reads it if it has changed.
func (v *directoryView) readFile(name string, now time.Time) {
	path := filepath.Join(v.folder, name)
	info, err := os.Lstat(path)
	if err != nil {
		delete(v.files, name) // It is gone since the folder was read.
		return
	}
	known := v.files[name]
	if known != nil && known.modified.Equal(info.ModTime()) && known.size == info.Size() {
		return
	}
	file := &directoryFile{modified: info.ModTime(), size: info.Size(), seen: now}
	if known == nil && now.Sub(info.ModTime()) >= limits.DirectoryDead {
		file.seen = time.Time{}
	}
	v.files[name] = file
	if !info.Mode().IsRegular() {
		file.problem = errors.New("it is no regular file")
		return
	}
	data, _, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(v.files, name)
		return
	}
	var a announcement
	if err == nil {
		a, err = parseAnnouncement(data)
	}
	file.instance, file.problem = a.instance(), err
}
