// Package peers holds the contestants that Fulmar is compared with, a program
// each. Their messages are generated from bench/idl by their own tools, into
// the folder gen, which is not committed.
//
// The programs are for Linux, as the benchmark is; elsewhere nothing of their
// requirements is compiled.
package peers

//go:generate go run ./generate -idl ../idl -o gen
