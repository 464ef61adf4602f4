//go:build !(!purego && gc && go1.26 && !go1.27 && (amd64 || arm64))

package thrift

// knownMapLayout is false: MakeMap leaves all maps to make.
const knownMapLayout = false
