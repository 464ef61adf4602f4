//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/governance/governancetest"
)

func BenchmarkCall(b *testing.B) { governancetest.BenchmarkCalls(b, entry()) }
