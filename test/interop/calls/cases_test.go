package calls_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

func loadCases(t *testing.T) cases.File {
	t.Helper()
	file, err := cases.Load(filepath.Join(peer.Folder(), "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// types returns what notation has to know about the generated types.
func types() notation.Types {
	return notation.Types{Defaults: map[reflect.Type]func() any{
		reflect.TypeFor[everything.Defaults](): func() any { return everything.NewDefaults() },
	}}
}

// methods returns the descriptions of all methods by the name of the IDL.
func methods() map[string]*fulmar.MethodDesc {
	found := map[string]*fulmar.MethodDesc{}
	for _, desc := range []*fulmar.ServiceDesc{everything.EverythingServiceDesc, everythingapache.ApacheServiceDesc} {
		for _, method := range desc.Methods {
			found[method.Name] = method
		}
	}
	return found
}

// library tells package cases about the clients that Fulmar generates.
type library struct {
	clients []reflect.Value
	methods map[string]*fulmar.MethodDesc
}

var _ cases.Library = (*library)(nil)

// newRunner returns a runner of cases against the server at address.
func newRunner(t *testing.T, server, address string, transport transport) *cases.Runner {
	t.Helper()
	all, apache := connect(t, address, transport)
	return &cases.Runner{
		Library: &library{clients: []reflect.Value{reflect.ValueOf(all), reflect.ValueOf(apache)}, methods: methods()},
		Types:   types(),
		Server:  server,
		Unique:  t.Name(),
	}
}

func (l *library) Method(name string) (cases.Method, error) {
	for _, client := range l.clients {
		if found, ok := cases.GeneratedName(client.Type(), name); ok {
			return cases.Method{
				Call:      client.MethodByName(found),
				Arguments: cases.ArgumentNames(reflect.TypeOf(l.methods[name].NewRequest()).Elem()),
			}, nil
		}
	}
	return cases.Method{}, fmt.Errorf("no client has the method %s", name)
}

func (l *library) Context(_, _ map[string]string) (context.Context, func() map[string]string) {
	return context.Background(), nil
}

func (l *library) Explain(failure error) cases.Failure {
	var e *fulmar.Error
	switch value := reflect.ValueOf(failure); {
	case !errors.As(failure, &e):
		// Generated exceptions are pointers to structs.
		if value.Kind() == reflect.Pointer {
			return cases.Failure{Declared: value}
		}
	case e.Origin() == fulmar.OriginRemote && e.Message() != "":
		return cases.Failure{Exception: map[fulmar.Code]int32{fulmar.Unimplemented: 1, fulmar.Internal: 6, fulmar.InvalidArgument: 7}[e.Code()]}
	case e.Origin() == fulmar.OriginTransport && e.Code() == fulmar.Unavailable:
		return cases.Failure{Closed: true}
	}
	return cases.Failure{}
}
