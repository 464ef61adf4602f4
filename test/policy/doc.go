// Package policy tests the state machines of package policy beside those of libraries
// that others use: breakers of failsafe-go and gobreaker, the token bucket of
// golang.org/x/time, and failsafe-go's bulkhead and retry policy. Where they differ a test
// shows it, and ADR-0070 says why, and what cannot be compared. A benchmark compares what
// they cost.
//
// It is a module of its own, so that the libraries are no requirement of Fulmar.
package policy
