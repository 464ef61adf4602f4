//go:build !((amd64 || arm64) && !race && !msan && !asan)

package byteswap_test

// Sanitizers look at every access, and 32-bit processors take a 64-bit number in
// pieces: with all lengths, one alignment in 13 took two and a half minutes with
// the race detector, and all of them 37 s as a program for 386.
const (
	lengthMax     = 512
	alignmentStep = 13
	longMax       = 64 << 10
)
