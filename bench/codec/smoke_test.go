//go:build linux

package codec_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec/codectest"
)

func TestSuite_OursAndThePlainOnesAreMeasured(t *testing.T) { codectest.Smoke(t, "../..", "bench") }
