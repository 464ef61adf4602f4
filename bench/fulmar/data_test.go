package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/rpc"
	"github.com/fulmar-rpc/fulmar/bench/rpc/rpctest"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func TestEqual_SeesEveryField(t *testing.T) {
	rpctest.CheckEqual(t, func(data, want *rpc.Complex) bool { return equal(newComplex(data), want) })
}

// The suite promises about 11 KB, as Kitex's benchmark has.
func TestComplex_HasItsSize(t *testing.T) {
	for caller := range 3 {
		for _, data := range rpc.NewComplexes(caller) {
			encoded, err := thrift.Marshal(newComplex(data))
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) < 11_300 || len(encoded) > 11_600 {
				t.Errorf("%d bytes on the wire, want about 11,429", len(encoded))
			}
		}
	}
}
