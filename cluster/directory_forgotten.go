package cluster

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Whether a server is dead its file does not say: its time is of the clock of the machine,
// and that may have jumped since. The first server that registers behind a jump of an hour
// would find all others forgotten. Comparing files with each other does not help, because
// the newcomer's own is by the new clock. So the time of a file only raises a suspicion,
// and a server that stays looks at what it suspects each time that it refreshes its own
// file: who lives has touched his by then.

// sighting is what a server saw when it last looked at the file of another one.
type sighting struct {
	modified time.Time
	size     int64
	// unchanged is how many looks since the first one have found the same.
	unchanged int
}

// sight returns what a first look sees.
func sight(info fs.FileInfo) sighting {
	return sighting{modified: info.ModTime(), size: info.Size()}
}

// look notes what one more look sees, DirectoryRefresh behind the last one.
func (s *sighting) look(info fs.FileInfo) {
	if next := sight(info); next.modified.Equal(s.modified) && next.size == s.size {
		s.unchanged++
	} else {
		*s = next
	}
}

// isDead reports whether nobody has touched the file for so many looks that nobody will. If
// somebody does all the same, because he was stopped for so long, he writes his file again.
func (s *sighting) isDead() bool { return s.unchanged >= limits.DirectoryForgetLooks }

// suspects are files in a folder that may be those of dead servers.
type suspects struct {
	folder string
	files  map[string]*sighting
}

// suspect returns the files of registrations, except one, that are older than DirectoryForget
// or from the future by the clock of the machine. The latter are those of servers that died before the
// clock was set back, and would stay until it is as late again.
func suspect(folder, but string) suspects {
	s := suspects{folder: folder, files: map[string]*sighting{}}
	// Of a folder that is too long a part: the next server that registers has the rest.
	names, _, _ := readFolder(folder, func(name string) bool {
		return isInstance(name) || strings.HasPrefix(name, temporaryBeginning)
	})
	now := time.Now()
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(folder, name))
		if err != nil || name == but || !info.Mode().IsRegular() {
			continue
		}
		if age := now.Sub(info.ModTime()); age > limits.DirectoryForget || age < 0 {
			seen := sight(info)
			s.files[name] = &seen
		}
	}
	return s
}

// look removes those that are dead, and suspects those no more that live or are gone.
func (s suspects) look() {
	for name, seen := range s.files {
		path := filepath.Join(s.folder, name)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			delete(s.files, name)
			continue
		}
		switch seen.look(info); {
		case seen.unchanged == 0:
			delete(s.files, name)
		case seen.isDead():
			_ = os.Remove(path)
			delete(s.files, name)
		}
	}
}
