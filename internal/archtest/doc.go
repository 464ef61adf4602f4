// Package archtest tests the source tree itself: who imports whom, which
// constructs are banned, what the public packages export, and whether the
// documents point at things that exist.
//
// The policy is data. policy.go says which package stands on which line and
// what it may import; exceptions.go lists the places where a rule does not
// hold, each with its reason. Every rule reads the tree through io/fs, so the
// tests can break it on purpose in a small tree of their own; a rule without
// such a test fails TestRules_EachIsBrokenOnPurpose.
//
// Files are parsed without regard to build constraints: a rule holds on every
// platform and with every tag. Nothing is type-checked, so a package that does
// not compile yet is still judged.
package archtest
