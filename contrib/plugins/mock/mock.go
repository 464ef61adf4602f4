// Package mock is a plugin of fulmar gen that writes mocks of services: for
// Orders a MockOrders, which is a server, and a MockOrdersClient. Both record
// their calls, answer as a test says, and are safe for concurrent use.
package mock

import (
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen"
	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// plugin writes <definition>_mock.go for each definition with services.
type plugin struct {
	// prefix begins the names of the types.
	prefix string
}

var _ gen.Plugin = (*plugin)(nil)

// New returns the plugin. The option "prefix" is what the names of mocks begin
// with in place of "Mock".
func New(options map[string]string) (gen.Plugin, error) {
	p := &plugin{prefix: "Mock"}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		value := options[key]
		switch {
		case key != "prefix":
			return nil, fmt.Errorf("option %s: is not known, expected prefix", key)
		case !token.IsIdentifier(value) || !token.IsExported(value):
			return nil, fmt.Errorf("option prefix: %q is not a name that Go exports", value)
		}
		p.prefix = value
	}
	return p, nil
}

func (p *plugin) Name() string { return "mock" }

func (p *plugin) Transform(*gen.Model) error { return nil }

func (p *plugin) Generate(output *gen.Output) error {
	for _, file := range output.Program().Files {
		if len(file.Services) == 0 {
			continue
		}
		var text strings.Builder
		for _, service := range file.Services {
			newMock(p.prefix, service).print(&text)
		}
		output.AddFile(file, "mock", text.String(), schema.Import{Name: "sync", Path: "sync"})
	}
	return nil
}

// mockType is the mock of one service.
type mockType struct {
	service *schema.Service
	name    string
	client  string
	methods []*mockMethod
	streams []*mockStream
}

// mockMethod is a method with the names that belong to it.
type mockMethod struct {
	schema.GoMethod
	// answer is the function that answers, calls what returns the calls, returns
	// what sets a fixed answer, and recorded the field that keeps them.
	answer, calls, returns, recorded string
	// call is the type of a recorded call.
	call string
	// fields are those of call.
	fields []string
}

func newMock(prefix string, service *schema.Service) *mockType {
	m := &mockType{service: service, name: prefix + service.GoName, client: prefix + service.GoName + "Client"}
	taken := map[string]bool{"mutex": true, m.name: true}
	for _, method := range service.GoMethods {
		taken[method.Name] = true // the interface wants them
	}
	// claim takes a name, with underscores behind it until it is free: a service
	// may have the methods place and placeCalls.
	claim := func(name string) string {
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		return name
	}
	for _, method := range service.GoMethods {
		if mode := streamMode(method.Method); mode != "" {
			m.streams = append(m.streams, &mockStream{GoMethod: method, mode: mode, answer: claim("On" + method.Name), open: claim("Open" + method.Name)})
			continue
		}
		one := &mockMethod{
			GoMethod: method,
			answer:   claim("On" + method.Name), calls: claim(method.Name + "Calls"), returns: claim(method.Name + "Returns"),
			recorded: claim("calls" + method.Name),
			call:     m.name + method.Name + "Call",
		}
		one.Parameters = slices.Clone(one.Parameters)
		for i := range one.Parameters {
			one.fields = append(one.fields, method.Method.Arguments[i].GoName)
			if name := &one.Parameters[i].Name; *name == "mock" || *name == "answer" || *name == "result" {
				*name += "_"
			}
		}
		m.methods = append(m.methods, one)
	}
	return m
}

func (m *mockType) print(out *strings.Builder) {
	p := func(format string, arguments ...any) { fmt.Fprintf(out, format+"\n", arguments...) }
	p("// %s is a %s for tests.\n//\n// It keeps the calls that it gets and answers as the functions in it say, which\n// are set before the first call. It is safe for concurrent use. The zero value is\n// ready; calls that nothing answers fail.", m.name, m.service.GoServer)
	p("type %s struct {", m.name)
	for _, method := range m.methods {
		p("// %s answers calls of %s. It is called by the goroutine of the call.", method.answer, method.Name)
		p("%s func(%s) %s", method.answer, method.parameters(), method.results())
	}
	for _, stream := range m.streams {
		stream.fields(p)
	}
	p("\nmutex sync.Mutex")
	for _, method := range m.methods {
		p("%s []%s", method.recorded, method.call)
	}
	p("}\n\nvar _ %s = (*%s)(nil)\n", m.service.GoServer, m.name)
	for _, method := range m.methods {
		m.method(p, method)
	}
	for _, stream := range m.streams {
		stream.method(p, m)
	}
	p("// %s is a %s for tests.\n//\n// It is a %s that takes options for the call, which it does not look at.", m.client, m.service.GoClient, m.name)
	p("type %s struct {\n%s", m.client, m.name)
	for _, stream := range m.streams {
		stream.clientFields(p)
	}
	p("}\n\nvar _ %s = (*%s)(nil)\n", m.service.GoClient, m.client)
	for _, stream := range m.streams {
		stream.clientMethod(p, m)
	}
	for _, method := range m.methods {
		p("// %s records the call and answers it as %s says.", method.Name, method.answer)
		p("func (mock *%s) %s(%s, _ ...fulmar.CallOption) %s {", m.client, method.Name, method.parameters(), method.results())
		p("return mock.%s.%s(%s)\n}\n", m.name, method.Name, method.arguments())
	}
}

// method prints what belongs to a method of the server.
func (m *mockType) method(p func(format string, arguments ...any), method *mockMethod) {
	p("// %s is a call of %s. What is pointed to is the caller's.", method.call, method.Name)
	var fields []string
	for i, field := range method.fields {
		fields = append(fields, "\n"+field+" "+method.Parameters[i].Type)
	}
	if len(fields) > 0 {
		fields = append(fields, "\n")
	}
	p("type %s struct{%s}\n", method.call, strings.Join(fields, ""))
	p("// %s records the call and answers it as %s says.", method.Name, method.answer)
	p("func (mock *%s) %s(%s) %s {", m.name, method.Name, method.parameters(), method.results())
	var recorded []string
	for i, field := range method.fields {
		recorded = append(recorded, field+": "+method.Parameters[i].Name)
	}
	p("mock.mutex.Lock()\nmock.%s = append(mock.%s, %s{%s})", method.recorded, method.recorded, method.call, strings.Join(recorded, ", "))
	p("answer := mock.%s\nmock.mutex.Unlock()\nif answer == nil {", method.answer)
	missing := fmt.Sprintf("fulmar.NewError(fulmar.Unimplemented, %s)", strconv.Quote("mock of "+m.service.Name+"."+method.Method.Name+": "+method.answer+" is not set"))
	if method.Result == "" {
		p("return %s\n}", missing)
	} else {
		p("return result, %s\n}", missing)
	}
	p("return answer(%s)\n}\n", method.arguments())

	p("// %s returns the calls of %s so far, in the order in which they came.", method.calls, method.Name)
	p("func (mock *%s) %s() []%s {\nmock.mutex.Lock()\ndefer mock.mutex.Unlock()", m.name, method.calls, method.call)
	p("return append([]%s(nil), mock.%s...)\n}\n", method.call, method.recorded)

	p("// %s makes all calls of %s return this. It may be called at any time.", method.returns, method.Name)
	parameter, values := "err error", "err"
	if method.Result != "" {
		parameter, values = "result "+method.Result+", err error", "result, err"
	}
	p("func (mock *%s) %s(%s) {\nmock.mutex.Lock()\ndefer mock.mutex.Unlock()", m.name, method.returns, parameter)
	p("mock.%s = func(%s) %s { return %s }\n}\n", method.answer, method.types(), method.unnamed(), values)
}

// parameters are the parameters of the method, the context first.
func (m *mockMethod) parameters() string {
	return m.list("ctx context.Context", func(p schema.GoParameter) string { return p.Name + " " + p.Type })
}

// types are the parameters without their names.
func (m *mockMethod) types() string {
	return m.list("context.Context", func(p schema.GoParameter) string { return p.Type })
}

func (m *mockMethod) arguments() string {
	return m.list("ctx", func(p schema.GoParameter) string { return p.Name })
}

// list is what begins a list, and a text of each parameter.
func (m *mockMethod) list(first string, text func(schema.GoParameter) string) string {
	texts := []string{first}
	for _, parameter := range m.Parameters {
		texts = append(texts, text(parameter))
	}
	return strings.Join(texts, ", ")
}

// results has a name for the result, so that there is a zero value to return.
func (m *mockMethod) results() string {
	if m.Result == "" {
		return "error"
	}
	return "(result " + m.Result + ", err error)"
}

func (m *mockMethod) unnamed() string {
	if m.Result == "" {
		return "error"
	}
	return "(" + m.Result + ", error)"
}
