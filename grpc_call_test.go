package fulmar_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/simnet"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// TestGRPC_Call: clients and servers of Fulmar in gRPC, with a service in Thrift: what
// travels in a TTHeader travels here as well.
func TestGRPC_Call(t *testing.T) {
	stub := &testservice.Stub{
		OnEcho: func(ctx context.Context, message *testservice.Message) (*testservice.Message, error) {
			call, _ := fulmar.CallFrom(ctx)
			switch message.Text {
			case "metadata":
				name, _ := call.Metadata().Persistent("USER_ID")
				id, _ := call.Metadata().Transient("x-request-id")
				return &testservice.Message{Text: name + " " + id}, fulmar.SetReplyMetadata(ctx, "took", "7 ms")
			case "refused":
				return nil, &testservice.Refused{Reason: "so it is", Limit: 7}
			case "business":
				return nil, fulmar.NewBusinessError(1001, "limit reached", map[string]string{"left": "10"})
			case "error":
				return nil, fulmar.NewError(fulmar.NotFound, "not here: ü")
			case "deadline":
				deadline, ok := ctx.Deadline()
				if left := time.Until(deadline); !ok || left > time.Second {
					t.Errorf("%v left, %v", left, ok)
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return message, nil
		},
	}
	simulate(t, simnet.Config{}, fulmar.ServerConfig{}, fulmar.ClientConfig{Protocol: fulmar.GRPC}, stub, func(s *simulation) {
		echo := func(text string, options ...fulmar.CallOption) (string, error) {
			ctx := fulmar.WithTransient(fulmar.WithPersistent(s.t.Context(), "USER_ID", "ann"), "x-request-id", "5")
			got, err := s.api.Echo(ctx, &testservice.Message{Text: text}, options...)
			if err != nil {
				return "", err
			}
			return got.Text, nil
		}
		long := strings.Repeat("long ", 1<<18)
		for _, text := range []string{"", "short", long} {
			if got, err := echo(text); got != text || err != nil {
				t.Errorf("%.10q of %d bytes, %v", got, len(got), err)
			}
		}
		var metadata map[string]string
		if got, err := echo("metadata", fulmar.ReceiveMetadata(&metadata)); got != "ann 5" || err != nil || !maps.Equal(metadata, map[string]string{"took": "7 ms"}) {
			t.Errorf("metadata: %q, %v, %q", got, err, metadata)
		}
		_, err := echo("refused")
		if refused := new(testservice.Refused); !errors.As(err, &refused) || refused.Limit != 7 {
			t.Errorf("declared exception: %v", err)
		}
		_, err = echo("business")
		if business := new(fulmar.BusinessError); !errors.As(err, &business) || business.Status() != 1001 || business.Extra()["left"] != "10" || business.Message() != "limit reached" {
			t.Errorf("business error: %v", err)
		}
		failed := new(fulmar.Error)
		if _, err = echo("error"); !errors.As(err, &failed) || failed.Code() != fulmar.NotFound || failed.Message() != "not here: ü" || failed.Executed() != fulmar.ExecutedYes && failed.Executed() != fulmar.ExecutedMaybe {
			t.Errorf("error: %v", err)
		}
		if _, err = echo("deadline", fulmar.Timeout(time.Second)); fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
			t.Errorf("deadline: %v", err)
		}
		unknownGRPC(s)
		if stats := s.client.Stats(); stats.Connections != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

// unknownGRPC calls a method and a service that nobody serves. Other services that have such a
// method are nobody's business, and no help in gRPC.
func unknownGRPC(s *simulation) {
	for name, want := range map[[2]string]string{
		{"Echo", "unknown"}:   `unknown method "unknown" of service "Echo"`,
		{"Elsewhere", "echo"}: `unknown service "Elsewhere"`,
	} {
		method, _ := fulmar.RawMethod(name[0], name[1], false)
		err := s.client.Call(s.t.Context(), method, &fulmar.Raw{0}, &fulmar.Raw{})
		failed := new(fulmar.Error)
		if !errors.As(err, &failed) || failed.Code() != fulmar.Unimplemented || failed.Executed() != fulmar.ExecutedNo || failed.Message() != want {
			s.t.Errorf("%q: %v", name, err)
		}
	}
}

// TestGRPC_OldConnections: no call is lost, nor made twice, where connections grow old all
// the time.
func TestGRPC_OldConnections(t *testing.T) {
	var ran atomic.Int64
	stub := &testservice.Stub{OnAdd: func(_ context.Context, left, right int32) (int32, error) {
		ran.Add(1)
		time.Sleep(time.Duration(left%5) * time.Millisecond)
		return left + right, nil
	}}
	config := fulmar.ClientConfig{Protocol: fulmar.GRPC, MaxConnectionAge: 50 * time.Millisecond, ConnectTimeout: 10 * time.Second}
	network := simnet.Config{Delay: 100 * time.Microsecond, DelayJitter: 2 * time.Millisecond, SplitPercent: 20}
	simulate(t, network, fulmar.ServerConfig{}, config, stub, func(s *simulation) {
		var made atomic.Int64
		end := time.Now().Add(2 * time.Second)
		var group sync.WaitGroup
		for i := range int32(20) {
			group.Go(func() {
				for j := int32(0); time.Now().Before(end); j++ {
					if got, err := s.api.Add(s.t.Context(), i+j, j); got != i+2*j || err != nil {
						t.Errorf("%d, %v", got, err)
					}
					made.Add(1)
				}
			})
		}
		group.Wait()
		if ran.Load() != made.Load() || made.Load() < 100 {
			t.Errorf("%d calls ran, %d were made", ran.Load(), made.Load())
		}
	})
}
