//go:build !amd64 || purego || race || msan || asan

package byteswap

// There is no assembly in this build.

func shuffles(int) bool { return false }

func shuffleAll([]byte, []byte, int) {}
