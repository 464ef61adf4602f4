//go:build !unix && !windows

package eventloop

// temporaryErrno knows no error that its methods do not tell about.
func temporaryErrno(error) bool { return false }
