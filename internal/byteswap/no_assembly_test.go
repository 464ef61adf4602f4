//go:build !amd64 || purego || race || msan || asan

package byteswap_test

const assembled = false
