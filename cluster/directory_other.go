//go:build !unix

package cluster

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// strictFiles: here modes say nothing of who may write to a file.
const strictFiles = false

func checkOwner(string, fs.FileInfo) error { return nil }

// readRegular reads a file that is no link, but no more of it than one byte beyond what is
// allowed.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limits.DirectoryFileBytes+1))
	return data, info, err
}
