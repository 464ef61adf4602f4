package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// rawMethod is RawMethod for names that are right.
func rawMethod(t *testing.T, service, method string) *fulmar.MethodDesc {
	t.Helper()
	desc, err := fulmar.RawMethod(service, method, false)
	if err != nil {
		t.Error(err)
	}
	return desc
}

func TestRawMethod_RefusesNames(t *testing.T) {
	long := strings.Repeat("n", limits.MethodNameBytes)
	for _, test := range []struct{ service, method, reason string }{
		{"S", "", "name of the method is empty"},
		{"S", "a\x00b", "control character"},
		{"S\x00", "m", `service "S\x00"`},
		{"S", "\xff", "not UTF-8"},
		{"S", "T:m", "has a colon"},
		{"S:T", "m", "has a colon"},
		{"", long, "1025 bytes together (limit 1024)"},
		{"S", long, "1026 bytes together (limit 1024)"},
	} {
		if _, err := fulmar.RawMethod(test.service, test.method, false); err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("RawMethod(%.10q, %.10q) = %v, want it to say %q", test.service, test.method, err, test.reason)
		}
	}
	for _, test := range []struct{ service, method string }{{"", "m"}, {"pkg.Shop", "größe"}, {"S", long[2:]}} {
		if desc, err := fulmar.RawMethod(test.service, test.method, true); err != nil || !desc.Oneway || desc.Name != test.method {
			t.Errorf("RawMethod(%.10q, %.10q): %v", test.service, test.method, err)
		}
	}
}

// TestRaw_CallsGeneratedServers without generated code: the bodies are written by hand.
func TestRaw_CallsGeneratedServers(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		told := make(chan string, 1)
		server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{
			OnVersion: func(ctx context.Context) (string, error) {
				return "1.2", fulmar.SetReplyMetadata(ctx, "COST", "3")
			},
			OnEcho: func(context.Context, *testservice.Message) (*testservice.Message, error) {
				return nil, &testservice.Refused{Reason: "no"}
			},
			OnAdd:    func(context.Context, int32, int32) (int32, error) { return 0, fulmar.NewError(fulmar.NotFound, "gone") },
			OnNotify: func(_ context.Context, text string) error { told <- text; return nil },
			OnNothing: func(context.Context) error {
				return fulmar.NewBusinessError(7, "closed", nil)
			},
		})
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
		call := func(name string, request fulmar.Raw, options ...fulmar.CallOption) (reply fulmar.Raw, err error) {
			err = client.Call(t.Context(), rawMethod(t, "Echo", name), &request, &reply, options...)
			return reply, err
		}
		empty := fulmar.Raw{0}
		var back map[string]string
		version := fulmar.Raw{byte(thriftwire.String), 0, 0, 0, 0, 0, 3, '1', '.', '2', 0}
		if reply, err := call("version", empty, fulmar.ReceiveMetadata(&back)); err != nil || !bytes.Equal(reply, version) || carriesHead(protocol) != (back["COST"] == "3") {
			t.Errorf("version: % x, %v, %v", reply, back, err)
		}
		message := fulmar.Raw{byte(thriftwire.Struct), 0, 1, byte(thriftwire.String), 0, 1, 0, 0, 0, 1, 'x', 0, 0}
		refused := fulmar.Raw{byte(thriftwire.Struct), 0, 1, byte(thriftwire.I32), 0, 2, 0, 0, 0, 0,
			byte(thriftwire.String), 0, 1, 0, 0, 0, 2, 'n', 'o', 0, 0}
		if reply, err := call("echo", message); err != nil || !bytes.Equal(reply, refused) {
			t.Errorf("a declared exception: % x, %v", reply, err)
		}
		if _, err := call("add", empty); err == nil || !strings.Contains(err.Error(), "Echo.add") {
			t.Errorf("an error: %v", err)
		}
		var business *fulmar.BusinessError
		if _, err := call("nothing", empty); errors.As(err, &business) != carriesHead(protocol) || err == nil {
			t.Errorf("a business error: %v", err)
		}
		notify, err := fulmar.RawMethod("Echo", "notify", true)
		if err != nil {
			t.Fatal(err)
		}
		request := textStruct(4)
		if err := client.Call(t.Context(), notify, &request, nil); err != nil {
			t.Error(err)
		} else if text := <-told; text != "xxxx" {
			t.Errorf("the oneway call arrives with %q", text)
		}
	})
}

// TestRaw_RefusesWhatCannotBeSent: before it is, so that a connection is not lost.
func TestRaw_RefusesWhatCannotBeSent(t *testing.T) {
	server := serve(t, fulmar.ServerConfig{}, &testservice.Stub{OnVersion: func(context.Context) (string, error) { return "1", nil }})
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol, MaxMessageBytes: 100})
		method := rawMethod(t, "Echo", "version")
		empty, long, reply := fulmar.Raw{}, textStruct(100), fulmar.Raw(nil)
		for _, test := range []struct {
			request any
			code    fulmar.Code
			reason  string
		}{
			{&empty, fulmar.InvalidArgument, "the raw body is empty"},
			{(*fulmar.Raw)(nil), fulmar.InvalidArgument, "is not a *fulmar.Raw"},
			{fulmar.Raw{0}, fulmar.InvalidArgument, "is not a *fulmar.Raw"},
			{&long, fulmar.ResourceExhausted, "(limit 100)"},
		} {
			e := asError(t, client.Call(t.Context(), method, test.request, &reply))
			if e.Code() != test.code || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Error(), test.reason) {
				t.Errorf("%T: %v, want %v: %s", test.request, e, test.code, test.reason)
			}
		}
		two := fulmar.Raw{0, 0}
		err := client.Call(t.Context(), method, &two, &reply)
		if refused := strings.Contains(fmt.Sprint(err), "1 bytes follow the end of the raw body's struct"); refused != (protocol == fulmar.Bare) {
			t.Errorf("two structs: %v", err)
		}
		request := fulmar.Raw{0}
		if err := client.Call(t.Context(), method, &request, testservice.Message{}); asError(t, err).Code() != fulmar.Internal {
			t.Errorf("a reply of another type: %v", err)
		}
	})
}
