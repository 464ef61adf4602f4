package guide_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

func TestKitex_AssumesMultiplexing(t *testing.T) {
	config := fulmar.ClientConfig{Target: "localhost:8888", AssumeMultiplexed: true}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
	config.Protocol = fulmar.Framed
	if err := config.Validate(); err == nil {
		t.Error("framed Thrift cannot be multiplexed, and Validate does not say so")
	}
}
