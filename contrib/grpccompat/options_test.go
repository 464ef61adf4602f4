package grpccompat_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/grpccompat"
)

// ownOption is one that only an interceptor knows.
type ownOption struct{ grpc.EmptyCallOption }

// TestOptions: what options of calls do, and that none is ignored.
func TestOptions(t *testing.T) {
	client := connect(t, &service{}, setting{}, false)
	finished := 0
	for name, test := range map[string]struct {
		option grpc.CallOption
		code   codes.Code
		text   string
	}{
		"wait for ready":    {grpc.WaitForReady(true), codes.OK, ""},
		"gzip":              {grpc.UseCompressor("gzip"), codes.OK, ""},
		"unknown encoding":  {grpc.UseCompressor("zpaq"), codes.InvalidArgument, "zpaq"},
		"static":            {grpc.StaticMethod(), codes.OK, ""},
		"retry buffer":      {grpc.MaxRetryRPCBufferSize(1), codes.OK, ""},
		"proto":             {grpc.CallContentSubtype("proto"), codes.OK, ""},
		"json":              {grpc.CallContentSubtype("json"), codes.Unimplemented, "json"},
		"sends as much":     {grpc.MaxCallSendMsgSize(11), codes.OK, ""},
		"sends too much":    {grpc.MaxCallSendMsgSize(10), codes.ResourceExhausted, "11 vs. 10"},
		"receives as much":  {grpc.MaxCallRecvMsgSize(11), codes.OK, ""},
		"receives too much": {grpc.MaxCallRecvMsgSize(10), codes.ResourceExhausted, "11 vs. 10"},
		"peer":              {grpc.Peer(new(peer.Peer)), codes.OK, ""},
		"no compression":    {grpc.UseCompressor(""), codes.OK, ""},
		"identity":          {grpc.UseCompressor(encoding.Identity), codes.OK, ""},
		"header":            {grpc.Header(new(metadata.MD)), codes.OK, ""},
		"trailer":           {grpc.Trailer(new(metadata.MD)), codes.OK, ""},
		"of an interceptor": {ownOption{}, codes.OK, ""},
		"one like that":     {&ownOption{}, codes.OK, ""},
		"authority":         {grpc.CallAuthority("x"), codes.Unimplemented, "option grpc.AuthorityOverride"},
		"codec":             {grpc.ForceCodec(nil), codes.Unimplemented, "option grpc.ForceCodec"},
		"new codec":         {grpc.ForceCodecV2(nil), codes.Unimplemented, "option grpc.ForceCodecV2"},
	} {
		finishedBefore, told := finished, errors.New("not told")
		_, err := ask(t.Context(), client, grpc.OnFinish(func(err error) { finished++; told = err }), test.option)
		if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, test.code, test.text)
		}
		if finished != finishedBefore+1 || told != err {
			t.Errorf("%s: finished %d times, with %v", name, finished-finishedBefore, told)
		}
		stream, err := testpb.NewTestServiceClient(client).FullDuplexCall(t.Context(), test.option)
		if err == nil {
			err = errors.Join(stream.Send(&testpb.StreamingOutputCallRequest{Payload: body(7)}), stream.CloseSend())
			if _, received := stream.Recv(); err == nil {
				err = received
			}
		}
		// What says how much is sent is about the messages of a stream, which are as long.
		if status.Code(err) != test.code {
			t.Errorf("%s of a stream: %v, want %v", name, err, test.code)
		}
	}
}

// bearer is a credential that says who calls.
type bearer struct {
	secure bool
	fails  error
}

func (b bearer) GetRequestMetadata(ctx context.Context, uri ...string) (map[string]string, error) {
	info, ok := credentials.RequestInfoFromContext(ctx)
	if !ok || b.secure && credentials.CheckSecurityLevel(info.AuthInfo, credentials.PrivacyAndIntegrity) != nil {
		return nil, errors.New("the connection is not secure")
	}
	return map[string]string{"Authorization": info.Method + " " + strings.Join(uri, " ")}, b.fails
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// TestCredentials: what they say reaches the handler; those that want TLS get nothing else.
func TestCredentials(t *testing.T) {
	var came []string
	s := &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		came = md.Get("authorization")
		return &testpb.SimpleResponse{}, nil
	}}
	client := connect(t, s, setting{client: grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Service: "test"}, Credentials: bearer{}}}, false)
	if _, err := ask(t.Context(), client); err != nil || strings.Join(came, "|") != testpb.TestService_UnaryCall_FullMethodName+" https://test/grpc.testing.TestService" {
		t.Errorf("%v, %q", err, came)
	}
	if _, err := ask(t.Context(), client, grpc.PerRPCCredentials(bearer{})); err != nil || len(came) != 2 {
		t.Errorf("%v, %q", err, came)
	}
	for name, test := range map[string]struct {
		bearer bearer
		code   codes.Code
	}{
		"without TLS":       {bearer{secure: true}, codes.Unauthenticated},
		"fails":             {bearer{fails: errors.New("no")}, codes.Unauthenticated},
		"fails with status": {bearer{fails: status.Error(codes.Unavailable, "no")}, codes.Unavailable},
	} {
		if _, err := ask(t.Context(), client, grpc.PerRPCCredentials(test.bearer)); status.Code(err) != test.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := grpccompat.NewClient(grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: "127.0.0.1:1"}, Credentials: bearer{secure: true}}); err == nil {
		t.Error("a client without TLS has credentials that want it")
	}
	if _, err := grpccompat.NewClient(grpccompat.ClientConfig{ClientConfig: fulmar.ClientConfig{Target: "127.0.0.1:1", Protocol: fulmar.Framed}}); err == nil {
		t.Error("a client for gRPC speaks another protocol")
	}
}

// TestTLS: credentials that want TLS, and who calls, as its certificate says.
func TestTLS(t *testing.T) {
	certificates, pool := certificate(t)
	who := ""
	s := &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		p, _ := peer.FromContext(ctx)
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			who = info.State.VerifiedChains[0][0].DNSNames[0]
		}
		return &testpb.SimpleResponse{}, nil
	}}
	serverTLS := &tls.Config{Certificates: certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	with := setting{
		server: fulmar.ServerConfig{TLS: fulmar.ServerTLS{Config: serverTLS}},
		client: grpccompat.ClientConfig{
			ClientConfig: fulmar.ClientConfig{TLS: fulmar.ClientTLS{Config: &tls.Config{RootCAs: pool, Certificates: certificates}, ServerName: "example.com"}},
			Credentials:  bearer{secure: true},
		},
	}
	client := connect(t, s, with, false)
	if _, err := ask(t.Context(), client); err != nil {
		t.Error(err)
	}
	if who != "example.com" {
		t.Errorf("%q calls", who)
	}
}

// certificate returns one for both sides that has signed itself.
func certificate(t *testing.T) ([]tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, pool
}

// TestRegistrar: services that cannot be are refused, and those of grpc-go itself work.
func TestRegistrar(t *testing.T) {
	with := setting{alsoRegister: func(r *grpccompat.Registrar) {
		healthpb.RegisterHealthServer(r, health.NewServer())
		reflection.Register(r)
		for name, register := range map[string]func(){
			"twice":     func() { testpb.RegisterTestServiceServer(r, &service{}) },
			"unrelated": func() { r.RegisterService(&healthpb.Health_ServiceDesc, &service{}) },
			"asks for nothing": func() {
				r.RegisterService(&grpc.ServiceDesc{ServiceName: "x", Methods: []grpc.MethodDesc{{MethodName: "y", Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
					return nil, nil
				}}}}, nil)
			},
			"no message": func() {
				r.RegisterService(&grpc.ServiceDesc{ServiceName: "x", Methods: []grpc.MethodDesc{{MethodName: "y", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
					return nil, decode(new(string))
				}}}}, nil)
			},
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: it was registered", name)
					}
				}()
				register()
			}()
		}
		if info := r.GetServiceInfo(); len(info) != 4 || len(info["grpc.testing.TestService"].Methods) != 8 {
			t.Errorf("%d services: %v", len(info), info)
		}
	}}
	eachWay(t, &service{}, with, func(t *testing.T, client *grpccompat.Client) {
		answer, err := healthpb.NewHealthClient(client).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%v, %v", answer, err)
		}
		stream, err := reflectionpb.NewServerReflectionClient(client).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
			t.Error(err)
		}
		list, err := stream.Recv()
		if err != nil || len(list.GetListServicesResponse().GetService()) != 4 {
			t.Errorf("%v, %v", list, err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); err == nil {
			t.Error("it does not end")
		}
	})
}
