// Package shape measures how an optional scalar or string field should look in
// generated Go: as Opt[T], as a plain field with a presence bit, or as a
// pointer. ADR-0018 draws the conclusions; README.md says how to run it.
//
// The struct types and their codecs are generated into bench/gen/shape, which
// is not committed: 222 fields in three shapes are some seven thousand lines.
package shape

//go:generate go run ./generate -o ../gen/shape
