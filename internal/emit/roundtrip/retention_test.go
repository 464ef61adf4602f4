package roundtrip_test

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/retention/golden/retention"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// refers reports whether s is a part of message.
func refers(message []byte, s string) bool {
	start, at := uintptr(unsafe.Pointer(unsafe.SliceData(message))), uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return at >= start && at < start+uintptr(len(message))
}

// TestStrings_AnnotationsOfFieldsDecide: what else is asked for is asked for the
// fields without one.
func TestStrings_AnnotationsOfFieldsDecide(t *testing.T) {
	text := strings.Repeat("text", 10)
	sent := &retention.Kept{
		Shared: text, Cached: text, Maybe: thrift.Some(text), Tags: []string{text}, Inner: map[string]*retention.Inner{text: {Text: text}},
		Blob: []byte(text), Plain: retention.Inner{Text: text}, Last: text,
	}
	message, err := thrift.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	for policy, shares := range map[thrift.Strings]bool{thrift.StringsMessage: true, thrift.StringsOwn: false} {
		received := retention.NewKept()
		if err := thrift.UnmarshalOwned(message, received, thrift.UnmarshalConfig{Strings: policy}); err != nil || !reflect.DeepEqual(sent, received) {
			t.Fatalf("received %+v, %v", received, err)
		}
		maybe, _ := received.Maybe.Get()
		key := ""
		for key = range received.Inner {
		}
		blob := unsafe.String(unsafe.SliceData(received.Blob), len(received.Blob))
		for name, check := range map[string]struct {
			text string
			want bool
		}{
			"shared": {received.Shared, shares}, "cached": {received.Cached, false}, "maybe": {maybe, false},
			"tags": {received.Tags[0], false}, "inner, key": {key, false}, "inner, value": {received.Inner[key].Text, false},
			"blob": {blob, true}, "plain": {received.Plain.Text, true}, "last": {received.Last, shares},
		} {
			if got := refers(message, check.text); got != check.want {
				t.Errorf("policy %d, field %s: it shares the message: %v, want %v", policy, name, got, check.want)
			}
		}
	}
}

func TestStrings_AnnotationsOfMethodsAndServicesAreInTheirCodecs(t *testing.T) {
	want := map[string]thrift.Strings{"put": thrift.StringsOwn, "get": thrift.StringsMessage, "find": thrift.StringsAuto}
	for _, method := range retention.PlainServiceDesc.Methods {
		if policy := method.Codec.(thrift.Codec).Strings; policy != want[method.Name] {
			t.Errorf("method %s: policy %d, want %d", method.Name, policy, want[method.Name])
		}
	}
	if len(retention.PlainServiceDesc.Methods) != len(want) {
		t.Errorf("%d methods, want %d", len(retention.PlainServiceDesc.Methods), len(want))
	}
}
