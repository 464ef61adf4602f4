package interop_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/reflection"
)

// TestReflection_AnswersGRPCGo: a client of grpc-go learns which services there are, and what
// a method takes.
func TestReflection_AnswersGRPCGo(t *testing.T) {
	address := serveWith(t, func(server *fulmar.Server) {
		server.RegisterService(testServiceDesc, testService{})
		reflection.Register(server)
	})
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := reflectpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(request *reflectpb.ServerReflectionRequest) *reflectpb.ServerReflectionResponse {
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil || !proto.Equal(answer.GetOriginalRequest(), request) {
			t.Fatalf("%v, %v", answer, err)
		}
		return answer
	}
	var services []string
	for _, service := range ask(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}).GetListServicesResponse().GetService() {
		services = append(services, service.GetName())
	}
	if !slices.Contains(services, testServiceName) || len(services) != 3 {
		t.Errorf("services %q", services)
	}
	files := ask(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: testServiceName}}).GetFileDescriptorResponse().GetFileDescriptorProto()
	found := false
	for _, encoded := range files {
		file := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(encoded, file); err != nil {
			t.Fatal(err)
		}
		for _, service := range file.GetService() {
			found = found || file.GetPackage()+"."+service.GetName() == testServiceName && len(service.GetMethod()) > 5
		}
	}
	if !found {
		t.Errorf("%d files do not have the service", len(files))
	}
	wrong := ask(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "no.Symbol"}})
	if wrong.GetErrorResponse().GetErrorCode() != int32(fulmar.NotFound) {
		t.Errorf("what there is not: %v", wrong)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
