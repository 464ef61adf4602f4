// Chaos lets things go wrong on real sockets and between real processes, and
// checks with a ledger of calls that no promise is broken. docs/guide/chaos.md
// says what each scenario does.
//
//	main.go      the command: which scenarios run, and what is printed
//	role.go      what the command does as a server or client of its own
//	process.go   starting, stopping and watching these
//	load.go      making calls that stand in the ledger
//	proxy.go     a network that fails
//	s*.go        the scenarios
//	ledger/      the books, and who judges them
package main

//go:generate fulmar gen -o gen chaos.thrift
