package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

func TestCodecs_KeepEverything(t *testing.T) {
	for _, c := range codecs() {
		t.Run(c.name, func(t *testing.T) {
			codectest.CheckValues(t, c.Codec)
			codectest.CheckThrift(t, c.Codec)
			codectest.CheckRepeats(t, c.Contestant(c.name))
		})
	}
}
