package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// jars is a pantry whose answers depend on the name that it is asked for.
type jars struct{}

var _ protoservice.PantryServer = (*jars)(nil)

func (j *jars) Find(ctx context.Context, request *protoservice.FindRequest) (*protoservice.Jar, error) {
	call, _ := fulmar.CallFrom(ctx)
	switch request.GetName() {
	case "missing":
		return nil, fulmar.NewError(fulmar.NotFound, "no such jar")
	case "nil":
		return nil, nil
	case "business":
		return nil, fulmar.NewBusinessError(1001, "not today", nil)
	case "not text":
		return &protoservice.Jar{Name: "\xff"}, nil
	case "panics":
		panic("a secret")
	}
	return &protoservice.Jar{Name: request.GetName(), Content: &protoservice.Jar_Text{Text: call.PayloadCodec().String()}}, nil
}

func (j *jars) Put(_ context.Context, jar *protoservice.Jar) (*protoservice.Jar, error) {
	return jar, nil
}

func (j *jars) Clear(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func serveJars(t *testing.T, config fulmar.ServerConfig) *running {
	t.Helper()
	return serveAny(t, config, func(registrar fulmar.Registrar) {
		protoservice.RegisterPantryServer(registrar, &jars{})
		testservice.RegisterEchoServer(registrar, &testservice.Stub{OnVersion: func(context.Context) (string, error) { return "1", nil }})
	})
}

// TestProtobufService_Calls: generated clients and servers, with each protocol that has a
// length, in the same process, and beside a service in Thrift on one port.
func TestProtobufService_Calls(t *testing.T) {
	server := serveJars(t, fulmar.ServerConfig{})
	configs := map[string]fulmar.ClientConfig{"local": {Local: server.server}}
	for _, protocol := range lengthProtocols {
		configs[protocol.String()] = fulmar.ClientConfig{Target: server.address, Protocol: protocol}
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			client := dialAny(t, config)
			checkJars(t, protoservice.NewPantryClient(client), config.Protocol != fulmar.Framed)
			if version, err := testservice.NewEchoClient(client).Version(t.Context()); version != "1" || err != nil {
				t.Errorf("Thrift with the same client: %q, %v", version, err)
			}
		})
	}
}

func checkJars(t *testing.T, pantry protoservice.PantryClient, carriesMetadata bool) {
	t.Helper()
	ctx := t.Context()
	if jar, err := pantry.Find(ctx, &protoservice.FindRequest{Name: "plums"}); err != nil || jar.GetName() != "plums" || jar.GetText() != "protobuf" {
		t.Errorf("Find: %v, %v", jar, err)
	}
	if empty, err := pantry.Clear(ctx, &emptypb.Empty{}); err != nil || empty == nil {
		t.Errorf("Clear: %v, %v", empty, err)
	}
	for _, length := range []int{0, 1_000, 2 * limits.LinkedStringBytes, 1 << 20} {
		jar := &protoservice.Jar{
			Name: "all", Inside: []*protoservice.Jar{{}, {Name: "inner", Left: proto.Int32(0)}},
			Counts: map[string]int64{"a": -1}, Since: timestamppb.Now(),
			Content: &protoservice.Jar_Data{Data: bytes.Repeat([]byte{7}, length)},
		}
		if got, err := pantry.Put(ctx, jar); err != nil || !proto.Equal(got, jar) {
			t.Errorf("Put with %d bytes: %v", length, err)
		}
	}
	_, err := pantry.Find(ctx, &protoservice.FindRequest{Name: "business"})
	var business *fulmar.BusinessError
	if errors.As(err, &business) != carriesMetadata || err == nil {
		t.Errorf("a business error arrives as %v", err)
	}
	for name, want := range map[string]string{
		"missing": "no such jar", "nil": "neither a result nor an error", "not text": "invalid UTF-8", "panics": "",
	} {
		jar, err := pantry.Find(ctx, &protoservice.FindRequest{Name: name})
		if e := asError(t, err); jar != nil || e.Origin() != fulmar.OriginRemote || !strings.Contains(e.Message(), want) || strings.Contains(e.Error(), "secret") {
			t.Errorf("%s: %v, %v", name, jar, err)
		} else if e.Method() != protoservice.PantryFindFullMethodName {
			t.Errorf("%s: the method is called %q", name, e.Method())
		}
	}
	for name, request := range map[string]*protoservice.Jar{"is nil": nil, "invalid UTF-8": {Name: "\xff"}} {
		_, err := pantry.Put(ctx, request)
		if e := asError(t, err); e.Code() != fulmar.InvalidArgument || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Message(), name) {
			t.Errorf("a request that %s: %v", name, err)
		}
	}
}

// TestProtobufService_Limits: messages that are too long or too deep are refused on both
// sides, with the name of the message and where it is.
func TestProtobufService_Limits(t *testing.T) {
	deep := &protoservice.Jar{}
	for range limits.Depth {
		deep = &protoservice.Jar{Inside: []*protoservice.Jar{deep}}
	}
	long := &protoservice.Jar{Name: strings.Repeat("x", 2_000)}
	short := serveJars(t, fulmar.ServerConfig{MaxMessageBytes: 1_000})
	put := func(config fulmar.ClientConfig, jar *protoservice.Jar) *fulmar.Error {
		_, err := protoservice.NewPantryClient(dialAny(t, config)).Put(t.Context(), jar)
		return asError(t, err)
	}
	for _, protocol := range lengthProtocols {
		if e := put(fulmar.ClientConfig{Target: short.address, Protocol: protocol, MaxMessageBytes: 1_000}, long); e.Code() != fulmar.ResourceExhausted || e.Executed() != fulmar.ExecutedNo || !strings.Contains(e.Message(), "fulmar.test.v1.Jar: message of 20") {
			t.Errorf("%v, too long to send: %v", protocol, e)
		}
		e := put(fulmar.ClientConfig{Target: serveJars(t, fulmar.ServerConfig{}).address, Protocol: protocol}, deep)
		if e.Origin() != fulmar.OriginRemote || e.Executed() == fulmar.ExecutedYes || !strings.Contains(e.Message(), "inside: messages nest too deep (at byte ") {
			t.Errorf("%v, too deep: %v", protocol, e)
		}
	}
}

// TestProtobufService_BrokenRequests are answered, and the connection goes on.
func TestProtobufService_BrokenRequests(t *testing.T) {
	conn := connect(t, serveJars(t, fulmar.ServerConfig{}).address)
	write(t, conn, protobufMessage(thriftwire.Call, "Find", 7, []byte{0x0a, 9, 'x'}))
	wantProtobufException(t, conn, 7, thriftwire.ExceptionProtocolError, "protobuf: fulmar.test.v1.FindRequest: name: the bytes end inside a field (at byte 1)")
	write(t, conn, protobufMessage(thriftwire.Call, "Nothing", 8, nil))
	wantProtobufException(t, conn, 8, thriftwire.ExceptionUnknownMethod, `unknown method "Nothing" for calls in protobuf`)
	// Fields that the definition does not have are kept, as the library has it.
	body := protowire.AppendTag(nil, 100, protowire.VarintType)
	body = protowire.AppendVarint(body, 5)
	write(t, conn, protobufMessage(thriftwire.Call, "Put", 9, body))
	if got := readMessage(t, conn); got.Type != thriftwire.Reply || !bytes.Equal(got.Body, body) {
		t.Errorf("a message with another field comes back as %+v", got)
	}
}

// TestProtobufService_OnlyFor chooses by the names that generated code has.
func TestProtobufService_OnlyFor(t *testing.T) {
	for name, want := range map[string][]string{
		protoservice.PantryFindFullMethodName: {"Find"},
		protoservice.PantryServiceName:        {"Find", "Clear"},
		"fulmar.test.v1.Pantry/Other":         nil,
	} {
		var seen []string
		interceptor := fulmar.OnlyFor(func(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
			seen = append(seen, call.Method())
			request, err := call.Request()
			if _, ok := request.(proto.Message); !ok || err != nil {
				t.Errorf("the request is %T, %v", request, err)
			}
			return next(ctx, call)
		}, name)
		client := dialAny(t, fulmar.ClientConfig{Target: serveJars(t, fulmar.ServerConfig{}).address, Interceptors: []fulmar.UnaryInterceptor{interceptor}})
		pantry := protoservice.NewPantryClient(client)
		if _, err := pantry.Find(t.Context(), &protoservice.FindRequest{}); err != nil {
			t.Error(err)
		}
		if _, err := pantry.Clear(t.Context(), &emptypb.Empty{}); err != nil {
			t.Error(err)
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%s: %q were seen, want %q", name, seen, want)
		}
	}
}
