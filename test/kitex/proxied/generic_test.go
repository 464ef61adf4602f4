package proxied_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

// wantGeneric returns what the generic client is told.
func wantGeneric(in, out bool) []string {
	business, circumstances := `"Status":1001,"Message":"not today","Extra":{"left":"3"}`, `"Reply":"field 0: trace 1 in Orders","Back":"3"`
	switch {
	case !out:
		// Kitex has no way to say the first, and loses it. Nothing names the service.
		business, circumstances = `"Reply":"00"`, `"Reply":"field 0: trace  in "`
	case !in:
		business, circumstances = `"Exception":6,"Text":"business error 1001: not today"`, `"Reply":"field 0: trace  in "`
	}
	var want []string
	for _, each := range [][2]string{
		{"echo", `"Reply":"field 0: hi"`}, {"echo", `"Reply":"0b 00 00 00 00 00 00 00"`}, {"echo", `"Reply":"the long text"`},
		{"fail", `"Exception":6,"Text":"biz error: no such order"`}, {"business", business}, {"declared", `"Reply":"field 1: sold out"`},
		{"nothing", `"Reply":"00"`}, {"circumstances", circumstances}, {"echo", `"Reply":"field 0: at the end"`},
	} {
		want = append(want, `{"Case":"`+each[0]+`",`+each[1]+"}")
	}
	return want
}

// TestGeneric_ProxiesAreInvisible between Kitex's generic client and its generic server, for
// bodies that neither of the three looks into.
func TestGeneric_ProxiesAreInvisible(t *testing.T) {
	back := startServer(t, "generic-server")
	for _, in := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeaderFramed} {
		headed := in == fulmar.TTHeaderFramed
		t.Run("without one, "+in.String(), func(t *testing.T) {
			compare(t, outcomes(t, "generic-client", back, in.String()), wantGeneric(headed, headed))
		})
		for _, out := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed} {
			t.Run(in.String()+" to "+out.String(), func(t *testing.T) {
				compare(t, outcomes(t, "generic-client", proxy(t, back, out), in.String()), wantGeneric(headed, out != fulmar.Framed))
			})
		}
	}
}

// TestGeneric_RawCalls of Kitex's generic server.
func TestGeneric_RawCalls(t *testing.T) {
	back := startServer(t, "generic-server")
	for _, protocol := range []fulmar.Protocol{fulmar.Bare, fulmar.Framed, fulmar.TTHeader, fulmar.TTHeaderFramed} {
		client := dial(t, back, protocol)
		call := func(name, argument string) (fulmar.Raw, error) {
			method, err := fulmar.RawMethod("Orders", name, false)
			if err != nil {
				t.Fatal(err)
			}
			request, reply := fulmar.Raw(textStruct(1, argument)), fulmar.Raw(nil)
			err = client.Call(t.Context(), method, &request, &reply)
			return reply, err
		}
		for _, text := range []string{"", "hi", strings.Repeat("x", 1<<20)} {
			if got, err := call("echo", text); err != nil || !bytes.Equal(got, textStruct(0, text)) {
				t.Errorf("%v: %d bytes: %d came back, %v", protocol, len(text), len(got), err)
			}
		}
		if got, err := call("declared", ""); err != nil || !bytes.Equal(got, textStruct(1, "sold out")) {
			t.Errorf("%v: a declared exception: % x, %v", protocol, got, err)
		}
		if _, err := call("fail", ""); fulmar.CodeOf(err) != fulmar.Internal || !strings.Contains(err.Error(), "no such order") {
			t.Errorf("%v: %v", protocol, err)
		}
		var business *fulmar.BusinessError
		_, err := call("business", "")
		if headed := protocol != fulmar.Bare && protocol != fulmar.Framed; errors.As(err, &business) != headed {
			t.Errorf("%v: a business error: %v", protocol, err)
		}
	}
}
