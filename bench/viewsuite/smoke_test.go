//go:build linux

package viewsuite_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
	"github.com/fulmar-rpc/fulmar/bench/viewsuite"
)

func TestSuite_OursIsMeasured(t *testing.T) {
	codectest.SmokeSuite(t, viewsuite.Suite(), "../..", "bench", "forward-1k", "readone-11k", "readall-4k", "mytest-1m")
}

func TestPaperSuite_OursIsMeasured(t *testing.T) {
	codectest.SmokeSuite(t, viewsuite.PaperSuite(), "../..", "bench", "read-write-1m")
}

func TestPaperSuite_OursPlaysCalls(t *testing.T) {
	rpctest.SmokeSuite(t, viewsuite.PaperSuite(), "../..", "bench", "echo-2k")
}

// Views and structs play whole calls and a gateway's.
func TestSuite_OursPlaysCalls(t *testing.T) {
	rpctest.SmokeSuite(t, viewsuite.Suite(), "../..", "bench", "echo-1k", "echo-items-1k", "hop-1k")
}
