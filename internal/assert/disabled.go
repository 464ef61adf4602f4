//go:build !invariants && !race

package assert

// Enabled tells whether That checks anything. It is a constant, so that code
// behind "if assert.Enabled" costs nothing where it is false.
const Enabled = false
