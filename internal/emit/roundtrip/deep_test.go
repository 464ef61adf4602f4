package roundtrip_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/deep/golden/deep"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/deepreuse/golden/deepreuse"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestDeep_DefaultsAreNotMadeBeforeTheyArePaid has a struct of which a new one takes more
// than the whole budget, in all places where one can be, in a few bytes.
func TestDeep_DefaultsAreNotMadeBeforeTheyArePaid(t *testing.T) {
	inPlaces := map[string]string{
		"field":    "\x0c\x00\x01\x00\x00",
		"optional": "\x0c\x00\x02\x00\x00",
		"element":  "\x0f\x00\x03\x0c\x00\x00\x00\x01\x00\x00",
		"value":    "\x0d\x00\x04\x08\x0c\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00",
		"pair":     "\x0d\x00\x05\x0f\x0c\x00\x00\x00\x01\x08\x00\x00\x00\x00\x00\x00",
		"key":      "\x0d\x00\x06\x0c\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00",
	}
	for place, message := range inPlaces {
		wantUnpaid(t, place, message, func(b []byte) error { return thrift.Unmarshal(b, new(deep.Places)) })
		wantUnpaid(t, place+", could reuse memory", message, func(b []byte) error { return thrift.Unmarshal(b, new(deepreuse.Places)) })
	}
	for place, test := range map[string]struct {
		message string
		fresh   func() thrift.Struct
	}{
		"arm":                   {"\x0c\x00\x01\x00\x00", func() thrift.Struct { return new(deep.Choice) }},
		"field of an exception": {"\x0c\x00\x01\x00\x00", func() thrift.Struct { return new(deep.Failure) }},
		"argument":              {"\x0c\x00\x01\x00\x00", func() thrift.Struct { return new(deep.FinderFindArgs) }},
		"no arguments":          {"\x00", func() thrift.Struct { return new(deep.FinderFindArgs) }},
		"other argument":        {"\x08\x00\x02\x00\x00\x00\x01\x00", func() thrift.Struct { return new(deep.FinderFindArgs) }},
		"result":                {"\x0c\x00\x00\x00\x00", func() thrift.Struct { return new(deep.FinderFindResult) }},
		"exception":             {"\x0c\x00\x01\x0c\x00\x01\x00\x00\x00", func() thrift.Struct { return new(deep.FinderFindResult) }},
	} {
		wantUnpaid(t, place, test.message, func(b []byte) error { return thrift.Unmarshal(b, test.fresh()) })
	}
	wantError(t, thrift.Unmarshal([]byte("\x08\x00\x02\x00\x00\x00\x01\x00"), new(deep.FinderFindArgs)),
		"Finder.find arguments: field 1: decoding needs")
}

// TestDeep_ReusedStructIsEmptyAfterRefusal reads into a struct that holds something: what
// it held must not look as if it had arrived.
func TestDeep_ReusedStructIsEmptyAfterRefusal(t *testing.T) {
	received := new(deepreuse.Deep4)
	wantUnpaid(t, "reused", "\x00", func(b []byte) error {
		received.List = []deepreuse.Deep3{{}}
		return thrift.UnmarshalOwned(b, received, thrift.UnmarshalConfig{Reuse: true})
	})
	if received.List != nil {
		t.Errorf("it holds %v", received)
	}
}

// wantUnpaid fails the test unless decoding a message fails because of the memory that it
// asks for, and does not take that before.
func wantUnpaid(t *testing.T, what, message string, decode func(b []byte) error) {
	t.Helper()
	const refused = 16 << 10 // the struct that was too much, and the error
	most := limits.DefaultMessage().DecodeBytes(len(message)) + refused
	var err error
	if got := testkit.Allocated(most, func() { err = decode([]byte(message)) }); got > most {
		t.Errorf("%s: %d bytes allocated for a message of %d (limit %d)", what, got, len(message), most)
	}
	if wantError(t, err, "bytes more memory than a message of"); err == nil {
		t.Error(what)
	}
}
