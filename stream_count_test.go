package fulmar_test

import (
	"io"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// otherwise describes a method of Feed as somebody does who has another definition of it.
func otherwise(method string, clientStreams, serverStreams bool) *fulmar.MethodDesc {
	return &fulmar.MethodDesc{
		Service: testservice.FeedServiceName, Name: method, Codec: thrift.Binary,
		ClientStreams: clientStreams, ServerStreams: serverStreams,
	}
}

// TestStreams_RequestsMiscounted: to a method that takes one message, none and several are a
// call of another method. Several are only noticed in gRPC.
func TestStreams_RequestsMiscounted(t *testing.T) {
	service := &feed{list: func(item *testservice.Item, stream fulmar.ServerStreamingServer[testservice.Item]) error {
		return stream.Send(item)
	}}
	eachStreamingWay(t, service, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for requests := range 4 {
			list, err := fulmar.OpenBidiStream[testservice.Item, testservice.Item](t.Context(), s.client, otherwise("list", true, true))
			if err != nil {
				t.Fatal(err)
			}
			for range requests {
				if err := list.Send(&testservice.Item{Name: "a"}); err != nil && err != io.EOF { // It may have ended.
					t.Fatal(err)
				}
			}
			if err := list.CloseSend(); err != nil {
				t.Error(err)
			}
			item, err := list.Recv()
			served := requests == 1 || requests > 1 && s.way != "grpc"
			if served && (err != nil || item.Name != "a") || !served && fulmar.CodeOf(err) != fulmar.Unimplemented {
				t.Errorf("%d requests: %v, %v", requests, item, err)
			}
			list.Cancel()
		}
	})
}

// TestStreams_AnswersMiscounted: a caller who waits for one answer takes none and several for
// those of another method.
func TestStreams_AnswersMiscounted(t *testing.T) {
	eachStreamingWay(t, &feed{}, fulmar.ServerConfig{}, fulmar.ClientConfig{}, func(t *testing.T, s *streaming) {
		for answers := range 4 {
			// It answers each message with one.
			swap, err := fulmar.OpenClientStream[testservice.Item, testservice.Item](t.Context(), s.client, otherwise("swap", true, false))
			if err != nil {
				t.Fatal(err)
			}
			for range answers {
				if err := swap.Send(&testservice.Item{Name: "a"}); err != nil && err != io.EOF {
					t.Fatal(err)
				}
			}
			item, err := swap.CloseAndRecv()
			if answers == 1 && (err != nil || item.Name != "a") || answers != 1 && fulmar.CodeOf(err) != fulmar.Unimplemented {
				t.Errorf("%d answers: %v, %v", answers, item, err)
			}
		}
	})
}
