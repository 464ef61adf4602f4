package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/remote"
	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/serviceinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/transport"

	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/courier/courier"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/everything/everything"
)

// serverName is what Kitex calls a destination service, clientName a source:
// names for service discovery that have nothing to do with the IDL.
const (
	serverName = "interop.server"
	clientName = "interop.client"
)

// clientOptions returns the options of a client for the server at address.
func (o *options) clientOptions(address, transportName string) ([]client.Option, error) {
	settings := []client.Option{
		client.WithHostPorts(address),
		client.WithClientBasicInfo(&rpcinfo.EndpointBasicInfo{ServiceName: clientName}),
		client.WithConnectTimeout(10 * time.Second),
	}
	if o.timeout > 0 {
		settings = append(settings, client.WithRPCTimeout(o.timeout))
	}
	if o.handlers {
		settings = append(settings, client.WithMetaHandler(transmeta.ClientTTHeaderHandler))
	}
	switch transportName {
	case "bare", "ttheader", "mux-bare":
		// Kitex adds protocols up, and starts with Framed. This takes it off.
		settings = append(settings, client.WithTransportProtocol(transport.PurePayload))
	}
	switch transportName {
	case "bare", "framed":
	case "ttheader", "ttheader-framed":
		settings = append(settings, client.WithTransportProtocol(transport.TTHeader))
	case "mux", "mux-bare":
		return append(settings, client.WithMuxConnection(1)), nil
	default:
		return nil, fmt.Errorf("no transport %q", transportName)
	}
	// One connection at a time, so that the other side can count what broke it.
	pool := connpool.IdleConfig{MaxIdlePerAddress: 1, MaxIdleGlobal: 1, MaxIdleTimeout: time.Minute}
	return append(settings, client.WithLongConnection(pool)), nil
}

// library tells package cases about Kitex's generated clients.
type library struct {
	clients []generated
}

// generated is a client with the description of its service.
type generated struct {
	client  reflect.Value
	service *serviceinfo.ServiceInfo
}

var _ cases.Library = (*library)(nil)

// connect returns clients for both services of the server at address.
func (o *options) connect(address, transportName string) (cases.Library, error) {
	settings, err := o.clientOptions(address, transportName)
	if err != nil {
		return nil, err
	}
	everythingClient, err := everything.NewClient(serverName, settings...)
	if err != nil {
		return nil, err
	}
	courierClient, err := courier.NewClient(serverName, settings...)
	if err != nil {
		return nil, err
	}
	return &library{clients: []generated{
		{reflect.ValueOf(everythingClient), everything.NewServiceInfo()},
		{reflect.ValueOf(courierClient), courier.NewServiceInfo()},
	}}, nil
}

func (l *library) Method(name string) (cases.Method, error) {
	for _, each := range l.clients {
		info := each.service.MethodInfo(context.Background(), name)
		found, ok := cases.GeneratedName(each.client.Type(), name)
		if info != nil && ok {
			return cases.Method{
				Call:      each.client.MethodByName(found),
				Arguments: cases.ArgumentNames(reflect.TypeOf(info.NewArgs()).Elem()),
			}, nil
		}
	}
	return cases.Method{}, fmt.Errorf("no client has the method %s", name)
}

func (l *library) Call(persistent, transient map[string]string) cases.Call {
	ctx := metainfo.WithBackwardValues(context.Background())
	for key, value := range persistent {
		ctx = metainfo.WithPersistentValue(ctx, key, value)
	}
	for key, value := range transient {
		ctx = metainfo.WithValue(ctx, key, value)
	}
	return cases.Call{Context: ctx, Backward: func() map[string]string { return metainfo.RecvAllBackwardValues(ctx) }}
}

func (l *library) Explain(err error) cases.Failure {
	if business, ok := kerrors.FromBizStatusError(err); ok {
		return cases.Failure{Business: &cases.Business{
			Code: business.BizStatusCode(), Message: business.BizMessage(), Extra: business.BizExtra(),
		}}
	}
	var remoteError *remote.TransError
	if errors.Is(err, kerrors.ErrRemoteOrNetwork) && errors.As(err, &remoteError) {
		return cases.Failure{Exception: remoteError.TypeID()}
	}
	// What is left with fields is an exception of the IDL.
	if value := reflect.ValueOf(err); value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct {
		return cases.Failure{Declared: value}
	}
	return cases.Failure{}
}
