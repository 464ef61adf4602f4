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
	"github.com/fulmar-rpc/fulmar/test/interop/gen/courier"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

func loadCases(t *testing.T, name string) cases.File {
	t.Helper()
	file, err := cases.Load(filepath.Join(peer.Folder(), name))
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
	for _, desc := range []*fulmar.ServiceDesc{everything.EverythingServiceDesc, everythingapache.ApacheServiceDesc, courier.CourierServiceDesc} {
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
func newRunner(t *testing.T, server string, api clients) *cases.Runner {
	t.Helper()
	return &cases.Runner{
		Library: &library{
			clients: []reflect.Value{reflect.ValueOf(api.EverythingClient), reflect.ValueOf(api.ApacheClient), reflect.ValueOf(api.CourierClient)},
			methods: methods(),
		},
		Types:  types(),
		Server: server,
		Unique: t.Name(),
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

func (l *library) Call(persistent, transient map[string]string) cases.Call {
	ctx := context.Background()
	for key, value := range persistent {
		ctx = fulmar.WithPersistent(ctx, key, value)
	}
	for key, value := range transient {
		ctx = fulmar.WithTransient(ctx, key, value)
	}
	backward := new(map[string]string)
	return cases.Call{
		Context:  ctx,
		Options:  []any{fulmar.ReceiveMetadata(backward)},
		Backward: func() map[string]string { return *backward },
	}
}

func (l *library) Explain(failure error) cases.Failure {
	var e *fulmar.Error
	var business *fulmar.BusinessError
	switch value := reflect.ValueOf(failure); {
	case errors.As(failure, &business):
		return cases.Failure{Business: &cases.Business{Code: business.Status(), Message: business.Message(), Extra: business.Extra()}}
	case !errors.As(failure, &e):
		// Generated exceptions are pointers to structs.
		if value.Kind() == reflect.Pointer {
			return cases.Failure{Declared: value}
		}
	case e.Origin() == fulmar.OriginRemote && e.Message() != "":
		// Unknown is what a handler's error is to those that can be told.
		return cases.Failure{Exception: map[fulmar.Code]int32{fulmar.Unimplemented: 1, fulmar.Internal: 6, fulmar.Unknown: 6, fulmar.InvalidArgument: 7}[e.Code()]}
	case e.Origin() == fulmar.OriginTransport && e.Code() == fulmar.Unavailable:
		return cases.Failure{Closed: true}
	}
	return cases.Failure{}
}
