//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

func TestBinary_KeepsEverything(t *testing.T) {
	codectest.CheckValues(t, binary())
	codectest.CheckThrift(t, binary())
	codectest.CheckRepeats(t, binary().Contestant("apache-thrift"))
	codectest.CheckRepeats(t, binary().Contestant("old"))
}
