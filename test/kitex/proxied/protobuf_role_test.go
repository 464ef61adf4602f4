package proxied_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/endpoint"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/remote"
	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/serviceinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// text is a message {1: string} as Kitex's generated code would hold it: argument and
// result of all methods.
type text struct{ value *wrapperspb.StringValue }

func (m *text) Marshal(out []byte) ([]byte, error) {
	if m.value == nil {
		return out, nil // as generated code: an error or a business error has no result
	}
	return proto.MarshalOptions{}.MarshalAppend(out, m.value)
}

func (m *text) Unmarshal(in []byte) error {
	m.value = new(wrapperspb.StringValue)
	return proto.Unmarshal(in, m.value)
}

// pantry describes a service in Protobuf. withMissing adds a method that the server does
// not have.
func pantry(withMissing bool) *serviceinfo.ServiceInfo {
	info := &serviceinfo.ServiceInfo{
		ServiceName: "Pantry", HandlerType: (*any)(nil), PayloadCodec: serviceinfo.Protobuf,
		Methods: map[string]serviceinfo.MethodInfo{}, Extra: map[string]any{"PackageName": "test"},
	}
	names := []string{"echo", "fail", "coded", "business", "panics", "tell", "told", "circumstances"}
	if withMissing {
		names = append(names, "missing")
	}
	for _, name := range names {
		handle := func(ctx context.Context, handler, args, result any) error {
			reply, err := handler.(*shelf).serve(ctx, name, args.(*text).value.GetValue())
			if result != nil && err == nil {
				result.(*text).value = wrapperspb.String(reply)
			}
			return err
		}
		newText := func() any { return new(text) }
		info.Methods[name] = serviceinfo.NewMethodInfo(handle, newText, newText, name == "tell")
	}
	return info
}

// shelf is the handler of the service.
type shelf struct{ told chan string }

func (s *shelf) serve(ctx context.Context, method, argument string) (string, error) {
	switch method {
	case "fail":
		return "", errors.New("no such jar")
	case "coded":
		return "", remote.NewTransErrorWithMsg(77, "coded")
	case "business":
		return "", kerrors.NewBizStatusErrorWithExtra(1001, "not today", map[string]string{"left": "3"})
	case "panics":
		panic("a secret")
	case "tell":
		s.told <- argument
	case "told":
		return <-s.told, nil
	case "circumstances":
		trace, _ := metainfo.GetPersistentValue(ctx, "TRACE")
		deadline, ok := ctx.Deadline()
		metainfo.SendBackwardValue(ctx, "COST", "3")
		return fmt.Sprintf("trace %s, deadline %v", trace, ok && time.Until(deadline) <= time.Minute), nil
	}
	return argument, nil
}

// listen opens a port and prints its address.
func listen() (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(listener.Addr())
	}
	return listener, err
}

// serverOptions returns the options of servers, which stop when standard input ends.
func serverOptions(listener net.Listener) []server.Option {
	klog.SetOutput(io.Discard)
	exit := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		exit <- nil
	}()
	return []server.Option{
		server.WithListener(listener),
		server.WithExitSignal(func() <-chan error { return exit }),
		server.WithExitWaitTime(time.Millisecond),
		server.WithServerBasicInfo(&rpcinfo.EndpointBasicInfo{ServiceName: "proxied.server"}),
		server.WithMetaHandler(transmeta.ServerTTHeaderHandler),
		server.WithEnableContextTimeout(true),
	}
}

// clientOptions returns those of clients that call an address with a transport.
func clientOptions(address, protocol string) []client.Option {
	klog.SetOutput(io.Discard)
	options := []client.Option{
		client.WithHostPorts(address),
		client.WithClientBasicInfo(&rpcinfo.EndpointBasicInfo{ServiceName: "proxied.client"}),
		client.WithRPCTimeout(30 * time.Second),
		client.WithConnectTimeout(10 * time.Second),
		client.WithMetaHandler(transmeta.ClientTTHeaderHandler),
		// Kitex adds protocols up; this takes off what it starts with.
		client.WithTransportProtocol(transport.PurePayload),
	}
	if protocol == "framed" {
		// For Protobuf Kitex sets TTHeader whatever it is told, but not for each call.
		return append(options, client.WithTransportProtocol(transport.Framed), client.WithMiddleware(func(next endpoint.Endpoint) endpoint.Endpoint {
			return func(ctx context.Context, request, response any) error {
				config := rpcinfo.AsMutableRPCConfig(rpcinfo.GetRPCInfo(ctx).Config())
				if err := errors.Join(config.SetTransportProtocol(transport.PurePayload), config.SetTransportProtocol(transport.Framed)); err != nil {
					return err
				}
				return next(ctx, request, response)
			}
		}))
	}
	return append(options, client.WithTransportProtocol(transport.TTHeaderFramed))
}

// explain fills in what kind of error a call ended in.
func explain(o *outcome, err error) {
	var remoteError *remote.TransError
	if business, ok := kerrors.FromBizStatusError(err); ok {
		o.Status, o.Message, o.Extra = business.BizStatusCode(), business.BizMessage(), business.BizExtra()
	} else if errors.As(err, &remoteError) {
		o.Exception, o.Text = remoteError.TypeID(), remoteError.Error()
	} else if err != nil {
		o.Text = "local: " + err.Error()
	}
	if before, _, ok := strings.Cut(o.Text, "stack="); ok {
		o.Text = before // of a panic, with addresses in memory
	}
}

func serveProtobuf([]string) error {
	listener, err := listen()
	if err != nil {
		return err
	}
	peer := server.NewServer(serverOptions(listener)...)
	if err := peer.RegisterService(pantry(false), &shelf{told: make(chan string, 1)}); err != nil {
		return err
	}
	return peer.Run()
}

// callProtobuf makes every call, of the server at an address with a transport.
func callProtobuf(arguments []string) error {
	caller, err := client.NewClient(pantry(true), append(clientOptions(arguments[0], arguments[1]), client.WithDestService("proxied.server"))...)
	if err != nil {
		return err
	}
	long := strings.Repeat("x", 1<<20)
	for _, call := range [][2]string{
		{"echo", "hi"}, {"echo", ""}, {"echo", long}, {"fail", "x"}, {"coded", "x"}, {"business", "x"}, {"panics", "x"}, {"missing", "x"},
		{"circumstances", "x"}, {"tell", "a secret"}, {"told", ""}, {"echo", "at the end"},
	} {
		o := outcome{Case: call[0]}
		ctx := metainfo.WithBackwardValues(metainfo.WithPersistentValue(context.Background(), "TRACE", "1"))
		reply := new(text)
		var result any = reply
		if call[0] == "tell" {
			result = nil
		}
		err := caller.Call(ctx, call[0], &text{wrapperspb.String(call[1])}, result)
		explain(&o, err)
		if o.Reply = reply.value.GetValue(); o.Reply == long {
			o.Reply = "the long text"
		}
		o.Back, _ = metainfo.RecvBackwardValue(ctx, "COST")
		if err := tell(o); err != nil {
			return err
		}
	}
	return nil
}
