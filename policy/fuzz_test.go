package policy_test

import (
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/policy"
)

// FuzzParseJSON: any bytes as a document are refused with a reason, or printed and read
// again alike.
func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(wholeDocument))
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := policy.ParseJSON(data)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		if err := document.Validate(); err != nil {
			t.Fatalf("it was read and is not valid: %v", err)
		}
		printed, err := document.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.ParseJSON(printed)
		if err != nil || !reflect.DeepEqual(again, document) {
			t.Fatalf("%s\nis read as %+v, %v\nwant %+v", printed, again, err, document)
		}
	})
}
