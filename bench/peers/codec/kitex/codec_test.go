//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

func TestFastCodec_KeepsEverything(t *testing.T) {
	codectest.CheckValues(t, fastCodec())
	codectest.CheckThrift(t, fastCodec())
	codectest.CheckRepeats(t, fastCodec().Contestant("kitex"))
	codectest.CheckRepeats(t, fastCodec().Contestant("new"))
}

func TestFrugal_KeepsEverything(t *testing.T) {
	codectest.CheckValues(t, reflecting())
	codectest.CheckThrift(t, reflecting())
	codectest.CheckRepeats(t, reflecting().Contestant("frugal"))
}
