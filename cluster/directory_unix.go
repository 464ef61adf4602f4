//go:build unix

package cluster

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// strictFiles says that the modes of files tell who may write to them.
const strictFiles = true

// checkOwner refuses folders of other users than this one and root: they could write what
// they like.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and not to this one (%d) or root", path, stat.Uid, os.Geteuid())
	}
	return nil
}

// readRegular reads a file, but no more of it than one byte beyond what is allowed, follows
// no link, and does not wait for whoever writes to a pipe.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return readOpen(path, file)
}

func readOpen(path string, file *os.File) ([]byte, fs.FileInfo, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, nil, fmt.Errorf("%s: everybody may write to it", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, limits.DirectoryFileBytes+1))
	return data, info, err
}
