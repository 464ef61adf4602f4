package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/fulmar-rpc/fulmar/test/apache/gen/base"
	"github.com/fulmar-rpc/fulmar/test/apache/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/cases"
)

// library tells package cases about a generated client on one connection.
type library struct {
	client    *everything.EverythingClient
	arguments map[string]any
}

var _ cases.Library = (*library)(nil)

func connect(address, transportName string) (cases.Library, error) {
	factory, err := transportFactory(transportName)
	if err != nil {
		return nil, err
	}
	transport, err := factory.GetTransport(thrift.NewTSocketConf(address, configuration()))
	if err != nil {
		return nil, err
	}
	if err := transport.Open(); err != nil {
		return nil, err
	}
	arguments := everything.Arguments()
	maps.Copy(arguments, base.Arguments())
	client := everything.NewEverythingClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(configuration()))
	return &library{client: client, arguments: arguments}, nil
}

func (l *library) Method(name string) (cases.Method, error) {
	client := reflect.ValueOf(l.client)
	arguments, known := l.arguments[name]
	found, ok := cases.GeneratedName(client.Type(), name)
	if !known || !ok {
		return cases.Method{}, fmt.Errorf("the client has no method %s", name)
	}
	return cases.Method{
		Call:      client.MethodByName(found),
		Arguments: cases.ArgumentNames(reflect.TypeOf(arguments)),
	}, nil
}

// Call ignores metadata, which Apache Thrift does not have.
func (l *library) Call(_, _ map[string]string) cases.Call {
	return cases.Call{Context: context.Background()}
}

func (l *library) Explain(err error) cases.Failure {
	var application thrift.TApplicationException
	var transport thrift.TTransportException
	switch {
	case errors.As(err, &application):
		return cases.Failure{Exception: application.TypeId()}
	case errors.As(err, &transport):
		return cases.Failure{Closed: transport.TypeId() == thrift.END_OF_FILE}
	}
	if _, ok := err.(thrift.TStruct); ok {
		return cases.Failure{Declared: reflect.ValueOf(err)}
	}
	return cases.Failure{}
}
