//go:build amd64 && !purego && !race && !msan && !asan

package byteswap_test

// assembled tells whether this build should have the assembly.
const assembled = true
