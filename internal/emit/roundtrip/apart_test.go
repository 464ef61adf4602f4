package roundtrip_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

var policies = []thrift.Strings{thrift.StringsAuto, thrift.StringsMessage, thrift.StringsOwn, thrift.StringsScoped}

// TestApart_NothingIsInTwoPlaces reads each struct under each policy: pieces for short
// lists, pointers and strings are shared by many, and each of them has a part of its own.
func TestApart_NothingIsInTwoPlaces(t *testing.T) {
	for _, prototype := range declared {
		for seed := range uint64(8) {
			message := marshal(t, newFilled(prototype, seed))
			for _, policy := range policies {
				received := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
				if err := thrift.UnmarshalOwned(message, received, thrift.UnmarshalConfig{Strings: policy}); err != nil {
					t.Fatal(err)
				}
				testkit.Apart(t, received)
				received = reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
				if err := thrift.Unmarshal(message, received); err != nil {
					t.Fatal(err)
				}
				testkit.Apart(t, received, message)
			}
		}
	}
}

// TestApart_AlsoWhenMemoryIsReused reads messages one after the other into the same struct:
// whole ones, some that are cut off, and some in which fields come again.
func TestApart_AlsoWhenMemoryIsReused(t *testing.T) {
	for _, prototype := range []thrift.Struct{reuse.NewNode(), reuse.NewBranch(), reuse.NewKeeper(), reuse.NewKeyed()} {
		for _, policy := range policies {
			config := thrift.UnmarshalConfig{Strings: policy, Reuse: true}
			reused := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
			random := rand.New(rand.NewPCG(uint64(policy), 7))
			for seed := range uint64(150) {
				message := marshal(t, newFilled(prototype, seed))
				switch random.IntN(4) {
				case 0:
					_ = thrift.UnmarshalOwned(message[:random.IntN(len(message))], reused, config)
					testkit.Apart(t, reused)
				case 1: // without its end mark, before another one
					message = append(message[:len(message)-1], marshal(t, newFilled(prototype, seed+1000))...)
				}
				if err := thrift.UnmarshalOwned(message, reused, config); err != nil {
					t.Fatal(err)
				}
				testkit.Apart(t, reused)
			}
		}
	}
}
