package mock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// mockStream is a method that streams. It is answered by functions, which the streams are
// given to, and not recorded: what is said in a stream is the function's to keep.
type mockStream struct {
	schema.GoMethod
	mode string
	// answer is the function that serves it, open the one that opens it for a client.
	answer, open string
}

// streamMode returns the value of the annotation that makes a method stream, "" if it does
// not.
func streamMode(method *schema.Method) string {
	for _, annotation := range method.Annotations {
		if annotation.Key == "streaming.mode" && annotation.Value != "unary" {
			return annotation.Value
		}
	}
	return ""
}

// stream is the type of the stream on one side, "Client" or "Server".
func (m *mockStream) stream(side string) string {
	request, response := strings.TrimPrefix(m.Parameters[0].Type, "*"), strings.TrimPrefix(m.Result, "*")
	switch m.mode {
	case "server":
		return "fulmar.ServerStreaming" + side + "[" + response + "]"
	case "client":
		return "fulmar.ClientStreaming" + side + "[" + request + ", " + response + "]"
	default:
		return "fulmar.BidiStreaming" + side + "[" + request + ", " + response + "]"
	}
}

// served is what a handler gets, and what it is called with.
func (m *mockStream) served() (parameters, arguments string) {
	parameters, arguments = "stream "+m.stream("Server"), "stream"
	if m.mode == "server" {
		parameters, arguments = "request "+m.Parameters[0].Type+", "+parameters, "request, stream"
	}
	return parameters, arguments
}

// opened is what opens a stream of a client, and what that is called with.
func (m *mockStream) opened() (parameters, arguments string) {
	parameters, arguments = "ctx context.Context", "ctx"
	if m.mode == "server" {
		parameters, arguments = parameters+", request "+m.Parameters[0].Type, "ctx, request"
	}
	return parameters, arguments
}

func (m *mockStream) fields(p func(string, ...any)) {
	parameters, _ := m.served()
	p("// %s is the handler of %s.\n%s func(%s) error", m.answer, m.Name, m.answer, parameters)
}

func (m *mockStream) clientFields(p func(string, ...any)) {
	parameters, _ := m.opened()
	p("// %s opens the streams of %s.\n%s func(%s) (%s, error)", m.open, m.Name, m.open, parameters, m.stream("Client"))
}

func (m *mockStream) missing(service, function string) string {
	return fmt.Sprintf("fulmar.NewError(fulmar.Unimplemented, %s)", strconv.Quote("mock of "+service+"."+m.Method.Name+": "+function+" is not set"))
}

// method prints the method of the server.
func (m *mockStream) method(p func(string, ...any), mock *mockType) {
	parameters, arguments := m.served()
	p("// %s is what %s does.\nfunc (mock *%s) %s(%s) error {", m.Name, m.answer, mock.name, m.Name, parameters)
	p("if mock.%s == nil {\nreturn %s\n}\nreturn mock.%s(%s)\n}\n", m.answer, m.missing(mock.service.Name, m.answer), m.answer, arguments)
}

// clientMethod prints the method of the client.
func (m *mockStream) clientMethod(p func(string, ...any), mock *mockType) {
	parameters, arguments := m.opened()
	p("// %s is what %s does.\nfunc (mock *%s) %s(%s, _ ...fulmar.CallOption) (%s, error) {", m.Name, m.open, mock.client, m.Name, parameters, m.stream("Client"))
	p("if mock.%s == nil {\nreturn nil, %s\n}\nreturn mock.%s(%s)\n}\n", m.open, m.missing(mock.service.Name, m.open), m.open, arguments)
}
