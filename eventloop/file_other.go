//go:build !unix

package eventloop

import "os"

// withoutBlocking returns file: elsewhere no descriptor changes another one.
func withoutBlocking(file *os.File) (*os.File, error) { return file, nil }
