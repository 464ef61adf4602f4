//go:build !purego && gc && go1.26 && !go1.27 && (amd64 || arm64)

package thrift

// knownMapLayout says that maps of the toolchain that compiles this are what smallMap
// says. Whoever raises the version reads internal/runtime/maps of the new one first, then
// runs TestSmallMap.
const knownMapLayout = true
