//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

func TestGoogle_KeepsEverything(t *testing.T) {
	codectest.CheckValues(t, google())
	codectest.CheckRepeats(t, google().Contestant("protobuf-go"))
}

func TestVtproto_KeepsEverything(t *testing.T) {
	codectest.CheckValues(t, vtproto())
	codectest.CheckRepeats(t, vtproto().Contestant("vtprotobuf"))
}
