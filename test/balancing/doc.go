// Command balancing compares the methods of package cluster in virtual time: a simulation
// drives Balancers by what users can call, Pick, Done and Update, with instances that are
// queues. It opens no socket, reads no clock, and the same seed gives the same figures.
//
// It prints a table, and with -write puts it into docs/guide/balancing.md and draws
// docs/guide/balancing.png:
//
//	go -C test/balancing run . -write
package main
