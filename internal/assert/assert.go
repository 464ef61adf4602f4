// Package assert checks invariants while testing. With the build tag
// invariants, and in race builds, That panics when its condition does not hold;
// in all other builds it is empty and the compiler removes the call.
//
// It is for programmer errors inside Fulmar only: what a peer or a user can
// cause must be an error in every build.
package assert

// That panics with message if Enabled and condition is false. The arguments
// are evaluated in every build, so an expensive condition belongs behind
// "if assert.Enabled".
func That(condition bool, message string) {
	if Enabled && !condition {
		panic("assertion failed: " + message)
	}
}
