//go:build linux

package netsuite_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/netsuite/nettest"
)

func TestSuite_OursAndTheFloorServeEveryCase(t *testing.T) { nettest.Smoke(t, "../..", "bench") }
