package pluginwire_test

import (
	"bytes"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/pluginwire"
)

// FuzzParseResponse reads any bytes as the answer of a plugin: what is accepted
// is within its limits, and written and read again alike.
func FuzzParseResponse(f *testing.F) {
	f.Add([]byte(`{"protocol":1,"files":[{"file":0,"suffix":"mock","text":"var X int","imports":{"a":"b"}}]}`))
	f.Add([]byte(`{"protocol":1,"insertions":[{"point":"struct.after","struct":0,"field":1,"text":"x"}],"diagnostics":[{"severity":"error","position":"a:1:2","message":"m"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		response, err := pluginwire.ParseResponse(text)
		if err != nil {
			return
		}
		if len(response.Files) > limits.PluginItems || response.Protocol != pluginwire.Version {
			t.Errorf("accepted %+v", response)
		}
		encoded, err := pluginwire.EncodeResponse(response)
		if err != nil {
			t.Fatal(err)
		}
		again, err := pluginwire.ParseResponse(encoded)
		if err != nil {
			t.Fatalf("%s becomes %s: %v", text, encoded, err)
		}
		if second, err := pluginwire.EncodeResponse(again); err != nil || !bytes.Equal(encoded, second) {
			t.Errorf("%s and %s, %v", encoded, second, err)
		}
	})
}

// FuzzDecodeRequest reads any bytes as a model: what is accepted is written and
// read again alike.
func FuzzDecodeRequest(f *testing.F) {
	text, err := pluginwire.EncodeRequest(pluginwire.Request{Plugin: "mock"}, load(f, "testdata/small.thrift"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"protocol":1,"packages":[],"files":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		request, program, err := pluginwire.DecodeRequest(text)
		if err != nil {
			return
		}
		header := pluginwire.Request{Plugin: request.Plugin}
		first, err := pluginwire.EncodeRequest(header, program)
		if err != nil {
			t.Fatal(err)
		}
		_, again, err := pluginwire.DecodeRequest(first)
		if err != nil {
			t.Fatalf("%s becomes %s: %v", text, first, err)
		}
		if second, err := pluginwire.EncodeRequest(header, again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s\nand\n%s, %v", first, second, err)
		}
	})
}
