package roundtripkitex_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestApart_NothingIsInTwoPlaces reads each struct: scalars, strings and structs that are
// pointed to share pieces of memory, and each of them has a part of its own.
func TestApart_NothingIsInTwoPlaces(t *testing.T) {
	for _, prototype := range declared {
		for seed := range uint64(20) {
			message, err := thrift.Marshal(newFilled(prototype, seed))
			if err != nil {
				t.Fatal(err)
			}
			for _, policy := range []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn} {
				received := newOf(prototype)
				if err := thrift.UnmarshalOwned(message, received, thrift.UnmarshalConfig{Strings: policy}); err != nil {
					t.Fatal(err)
				}
				testkit.Apart(t, received)
			}
			received := newOf(prototype)
			if _, err := received.FastRead(message); err != nil {
				t.Fatal(err)
			}
			testkit.Apart(t, received, message)
		}
	}
}
