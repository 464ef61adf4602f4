//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
)

func TestFastCodec_PlaysSuiteView(t *testing.T) {
	contestant := fastCodec().Contestant("kitex")
	for _, c := range codec.ViewCases() {
		if strings.HasSuffix(c.Name, "6m") {
			continue
		}
		repeat, err := contestant.Repeat(c.Name)
		if err == nil {
			_, err = repeat.Times(2)
		}
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
