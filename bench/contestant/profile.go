package contestant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profile begins to write where the processor time goes into a folder, and returns what
// ends it: contestant-case-server.pprof and -client.pprof, of the last time that they
// played the case. Nothing is written if the folder is empty. A profile takes a few
// percent of the time, so what is measured meanwhile is no result.
func profile(folder, contestant, caseName, side string) (end func() error, err error) {
	if folder == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%s-%s.pprof", contestant, caseName, side)))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
