//go:build !unix

package yamlpolicy

// nonBlocking is nothing: pipes do not stand among files here.
const nonBlocking = 0
