package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Directory is a Registry for the services of one machine, without any server: a folder,
// in which each service has a folder, in which each instance is a small file in JSON. A
// server that is registered touches its file every 5 s (DirectoryRefresh); after 16 s
// (DirectoryDead) without that it counts as dead. Clients look at the folder every 500 ms
// (DirectoryPoll).
//
// Who may write to the folder says where calls go. It is refused if it is not a folder, if
// it belongs neither to this user nor to root, or if everybody may write to it, unless it
// is sticky, as the one for temporary files is. Files that everybody may write to, that are no regular files, that
// are too long or make no sense are left out, and told to Report. Files that are not named
// *.json are passed over. In a folder with more than 40,000 files of any kind (DirectoryEntries)
// not all instances may be found, which is told too.
type Directory struct {
	// Path is the folder; it is made if it does not exist, for this user only. Default:
	// DefaultDirectory.
	Path string
}

var _ Registry = Directory{}

// DefaultDirectory returns the folder of a Directory that names none: $FULMAR_REGISTRY, or
// else fulmar/registry in the folder for the sockets of this user, $XDG_RUNTIME_DIR, or
// else fulmar-<uid> in the folder for temporary files.
func DefaultDirectory() string {
	if path := os.Getenv("FULMAR_REGISTRY"); path != "" {
		return path
	}
	if path := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(path) {
		return filepath.Join(path, "fulmar", "registry")
	}
	return filepath.Join(os.TempDir(), "fulmar-"+strconv.Itoa(os.Getuid()))
}

func (d Directory) path() string {
	if d.Path == "" {
		return DefaultDirectory()
	}
	return d.Path
}

// announcement is what the file of an instance has in it. Other fields are left alone.
type announcement struct {
	Address string            `json:"address"`
	Weight  int               `json:"weight,omitempty"`
	Zone    string            `json:"zone,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	// Owner tells the process that has written it from another one with the same address.
	Owner string `json:"owner"`
}

// parseAnnouncement reads a file.
func parseAnnouncement(data []byte) (announcement, error) {
	var a announcement
	if len(data) > limits.DirectoryFileBytes {
		return a, fmt.Errorf("a file of more than %d bytes", limits.DirectoryFileBytes)
	}
	if !utf8.Valid(data) {
		return a, errors.New("not in UTF-8")
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, err
	}
	if a.Address == "" {
		return a, errors.New("no address")
	}
	for _, text := range []string{a.Address, a.Zone, a.Owner} {
		if len(text) > limits.TargetBytes {
			return a, fmt.Errorf("a text of %d bytes (limit %d)", len(text), limits.TargetBytes)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return a, fmt.Errorf("%.100q has control characters", text)
		}
	}
	return a, nil
}

func (a announcement) instance() Instance {
	return Instance{Address: a.Address, Weight: a.Weight, Zone: a.Zone, Tags: a.Tags}
}

// fileName returns a name that any text can have: letters, digits, "-", "_" and "." stay,
// but not a dot in front.
func fileName(text string) string {
	name := strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:]
	}
	return name
}

// fileNameBytes is how long the name of a file may be, with its ending.
const fileNameBytes = 200

// checkService returns what is wrong with the name of a service.
func checkService(service string) error {
	switch {
	case service == "":
		return errors.New("the name of the service is empty")
	case !utf8.ValidString(service):
		return fmt.Errorf("service %.100q is not in UTF-8", service)
	case strings.ContainsRune(service, '/'):
		return fmt.Errorf("service %.100q has a slash in it", service)
	case len(fileName(service)) > fileNameBytes:
		return fmt.Errorf("service %.100q...: its folder has a name of %d bytes (limit %d)", service, len(fileName(service)), fileNameBytes)
	}
	return nil
}

// Resolver finds the instances of a service. Its name must not have a slash in it.
func (d Directory) Resolver(service string) (Resolver, error) {
	if err := checkService(service); err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	if err := d.checkPath(); err != nil {
		return nil, err
	}
	return &directoryResolver{root: d.path(), folder: filepath.Join(d.path(), fileName(service))}, nil
}

// checkPath refuses folders that depend on where a process was started.
func (d Directory) checkPath() error {
	if path := d.path(); !filepath.IsAbs(path) {
		return fmt.Errorf("directory: %.200q is not an absolute path", path)
	}
	return nil
}

// Register writes the file of an instance, and keeps it fresh until Withdraw.
func (d Directory) Register(ctx context.Context, service string, instance Instance) (Registration, error) {
	if err := checkService(service); err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	if err := d.checkPath(); err != nil {
		return nil, err
	}
	a := announcement{Address: instance.Address, Weight: instance.Weight, Zone: instance.Zone, Tags: instance.Tags, Owner: rand.Text()}
	data, err := json.Marshal(a)
	if err == nil {
		_, err = parseAnnouncement(data)
	}
	name := fileName(instance.Address) + fileEnding
	if err == nil && len(name) > fileNameBytes {
		err = fmt.Errorf("its file has a name of %d bytes (limit %d)", len(name), fileNameBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("directory: instance %.100q: %w", instance.Address, err)
	}
	r := &directoryRegistration{
		root: d.path(), folder: filepath.Join(d.path(), fileName(service)), name: name, data: data, owner: a.Owner,
		done: make(chan struct{}),
	}
	if err := r.write(); err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	r.suspects = suspect(r.folder, r.name)
	// What Report tells stays, the end of ctx does not.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	go r.run(running)
	return r, nil
}

// fileEnding is that of instances; other files are none.
const fileEnding = ".json"

// temporaryBeginning is that of files that are not written yet.
const temporaryBeginning = ".new-"

// directoryRegistration keeps one file fresh.
type directoryRegistration struct {
	root, folder, name string
	data               []byte
	owner              string
	// suspects are files of others, and other is this one while it belongs to another one.
	suspects  suspects
	other     sighting
	cancel    context.CancelFunc
	done      chan struct{}
	once      sync.Once
	withdrawn error
}

func (r *directoryRegistration) path() string { return filepath.Join(r.folder, r.name) }

func (r *directoryRegistration) run(ctx context.Context) {
	defer close(r.done)
	for wait(ctx, limits.DirectoryRefresh) {
		if err := r.refresh(); err != nil {
			Report(ctx, fmt.Errorf("directory: %w", err))
		}
		r.suspects.look()
	}
}

// refresh says that the instance is there still. If its file is gone, or is another one's
// that has died, it writes it anew.
func (r *directoryRegistration) refresh() error {
	if owner, info, err := r.look(); err == nil && owner != r.owner {
		if r.other.look(info); !r.other.isDead() {
			return fmt.Errorf("%s belongs to another process that has the same address", r.path())
		}
	} else if err == nil {
		now := time.Now()
		if err := os.Chtimes(r.path(), now, now); err == nil {
			return nil
		}
	}
	return r.write()
}

// look returns whose the file is, and what is known of it.
func (r *directoryRegistration) look() (owner string, info fs.FileInfo, err error) {
	data, info, err := readRegular(r.path())
	if err != nil {
		return "", nil, err
	}
	a, err := parseAnnouncement(data)
	return a.Owner, info, err
}

// write puts the file there as a whole: those who read it see all of it or nothing.
func (r *directoryRegistration) write() error {
	if err := makeFolder(r.root, r.folder); err != nil {
		return err
	}
	file, err := os.CreateTemp(r.folder, temporaryBeginning+"*")
	if err != nil {
		return err
	}
	temporary := file.Name()
	_, err = file.Write(r.data)
	if err == nil {
		err = file.Chmod(0o644)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		// Of the clock that refreshes it, and not of the file system.
		now := time.Now()
		err = os.Chtimes(temporary, now, now)
	}
	if err == nil {
		err = os.Rename(temporary, r.path())
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// Withdraw removes the file, unless it is another one's by now.
func (r *directoryRegistration) Withdraw(context.Context) error {
	r.once.Do(func() {
		r.cancel()
		<-r.done
		owner, _, err := r.look()
		if err == nil && owner == r.owner {
			err = os.Remove(r.path())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.withdrawn = fmt.Errorf("directory: %w", err)
		}
	})
	return r.withdrawn
}

// makeFolder makes the folder of a service, and the one that it is in.
func makeFolder(root, folder string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	if err := checkFolder(root); err != nil {
		return err
	}
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	switch err := os.Mkdir(folder, 0o700); {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return err
	default:
		// Whoever may write to the one may write to the other; the umask does not count.
		if err := os.Chmod(folder, info.Mode()&(fs.ModePerm|fs.ModeSticky)); err != nil {
			return err
		}
	}
	return checkFolder(folder)
}

// checkFolder refuses what is no folder, and folders that strangers may write to.
func checkFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0 && strictFiles:
		return fmt.Errorf("%s: everybody may write to it, and it is not sticky (mode %v)", path, mode)
	}
	return checkOwner(path, info)
}

// isInstance reports whether a file may be that of an instance, and not a temporary one or
// something else.
func isInstance(name string) bool {
	return strings.HasSuffix(name, fileEnding) && !strings.HasPrefix(name, ".")
}

// folderPart is how many names are read at a time: those that are not wanted are forgotten.
const folderPart = 1000

// readFolder returns the names in a folder that are wanted, in any order. cut says that it
// has more than DirectoryEntries, wanted or not, of which the others were not read.
func readFolder(path string, wanted func(name string) bool) (names []string, cut bool, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer folder.Close()
	for left := limits.DirectoryEntries + 1; left > 0; {
		part, err := folder.Readdirnames(min(left, folderPart))
		if errors.Is(err, io.EOF) {
			return names, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, name := range part {
			if wanted(name) {
				names = append(names, name)
			}
		}
		left -= len(part)
	}
	return names, true, nil
}
