//go:build (amd64 || arm64) && !race && !msan && !asan

package byteswap_test

const (
	lengthMax = 4096
	// alignmentStep is how far the alignments are apart that are tested.
	alignmentStep = 1
	// longMax is about how many bytes the longest slices have.
	longMax = 256 << 10
)
