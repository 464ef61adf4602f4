package roundtrip_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestMissing_OtherErrorsKeepTheirPlace has structs that lack a required field because
// reading ended before it: the error that it ended with names each field that it is in.
func TestMissing_OtherErrorsKeepTheirPlace(t *testing.T) {
	for name, test := range map[string]struct {
		into    thrift.Struct
		message string
		want    string
	}{
		"a field that is cut off": {orders.NewItem(), "\x08\x00\x02\x00", "orders.Item: field 2"},
		"one of a struct in it":   {recursion.NewC(), "\x0c\x00\x01\x0b\x00\x09\x00\x00\x00\x09", "recursion.C: field 1: recursion.A: field 9"},
		"an unknown one":          {orders.NewItem(), "\x0b\x00\x63\x00\x00\x00\x09", "orders.Item: field 99"},
	} {
		wantError(t, thrift.Unmarshal([]byte(test.message), test.into), test.want)
		if t.Failed() {
			t.Log(name)
		}
	}
	wantError(t, thrift.Unmarshal([]byte("\x00"), orders.NewItem()), "orders.Item: required but absent: sku")
}
