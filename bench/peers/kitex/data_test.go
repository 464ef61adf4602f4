//go:build linux

package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
)

func TestEqual_SeesEveryField(t *testing.T) {
	rpctest.CheckEqual(t, func(data, want *rpc.Complex) bool { return equal(newComplex(data), want) })
}
