// Package registrytest is what is done to every registry: real servers of it are killed,
// emptied, cut off and filled with nonsense while instances are announced in it and looked
// up. It is for tests of modules under contrib.
package registrytest
