package interop_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/health"
)

// TestHealth_AnswersGRPCGo: the client of grpc-go asks, and watches.
func TestHealth_AnswersGRPCGo(t *testing.T) {
	var known *health.Health
	address := serveWith(t, func(server *fulmar.Server) { known = health.Register(server) })
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := grpc_health_v1.NewHealthClient(conn)
	if answer, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("the server: %v, %v", answer, err)
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "shop"}); status.Code(err) != codes.NotFound {
		t.Errorf("a service of which nothing is known: %v", err)
	}
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Errorf("at first %v, %v", answer, err)
	}
	known.Set("shop", health.NotServing)
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("then %v, %v", answer, err)
	}
	list, err := client.List(t.Context(), &grpc_health_v1.HealthListRequest{})
	if statuses := list.GetStatuses(); err != nil || len(statuses) != 2 ||
		statuses[""].GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING || statuses["shop"].GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the list: %v, %v", list, err)
	}
	known.Stop()
	if answer, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("behind Stop: %v, %v", answer, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
