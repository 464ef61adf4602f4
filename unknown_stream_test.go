package fulmar_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
)

// throughProxy returns a client that reaches, in a protocol of its own, a server of feeds
// through one that knows none.
func throughProxy(t *testing.T, in, out string, service *feed, front fulmar.ServerConfig) *streaming {
	t.Helper()
	back := newStreaming(t, out, service, fulmar.ServerConfig{}, fulmar.ClientConfig{})
	front.UnknownStreamHandler = fulmar.ForwardStreams(back.client)
	return newStreamingOf(t, in, func(*fulmar.Server) {}, front, fulmar.ClientConfig{})
}

// TestForwardStreams_BetweenProtocols: messages of one kind travel in any protocol, and a
// business error with them.
func TestForwardStreams_BetweenProtocols(t *testing.T) {
	service := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		for item, err := range stream.All() {
			if err != nil {
				return err
			}
			if err := stream.Send(item); err != nil {
				return err
			}
		}
		return fulmar.NewBusinessError(1001, "not today", map[string]string{"left": "3"})
	}}
	for _, in := range directWays {
		for _, out := range directWays {
			t.Run(in+" to "+out, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := throughProxy(t, in, out, service, fulmar.ServerConfig{})
					swap, err := s.api.Swap(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, length := range []int{0, 1000, 100_000, 1_000_000} {
						sent := &testservice.Item{Name: strings.Repeat("x", length), Count: int32(length)}
						if err := swap.Send(sent); err != nil {
							t.Fatal(err)
						}
						if got, err := swap.Recv(); err != nil || got.Name != sent.Name || got.Count != sent.Count {
							t.Fatalf("%d bytes come back as another message, %v", length, err)
						}
					}
					if err := swap.CloseSend(); err != nil {
						t.Error(err)
					}
					var business *fulmar.BusinessError
					if _, err := swap.Recv(); !errors.As(err, &business) || business.Status() != 1001 || business.Extra()["left"] != "3" {
						t.Errorf("it ends with %v", err)
					}
				})
			})
		}
	}
}

// TestForwardStreams_HeaderWithoutMetadata: a header that the server sends in front of its
// first message comes at once. A stream without one ends as it did.
func TestForwardStreams_HeaderWithoutMetadata(t *testing.T) {
	service := &feed{
		swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
			if err := stream.SendHeader(nil); err != nil {
				return err
			}
			_, err := stream.Recv()
			return err
		},
		fill: func(fulmar.ClientStreamingServer[testservice.Item, testservice.Item]) error {
			return fulmar.NewError(fulmar.NotFound, "not here")
		},
	}
	for _, in := range directWays {
		for _, out := range directWays {
			t.Run(in+" to "+out, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := throughProxy(t, in, out, service, fulmar.ServerConfig{})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					swap, err := s.api.Swap(ctx)
					if err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					if header, err := swap.Header(); err != nil || len(header) > 0 || time.Since(start) > time.Second {
						t.Errorf("the header is %v, %v, after %v", header, err, time.Since(start))
					}
					if err := swap.Send(&testservice.Item{}); err != nil {
						t.Error(err)
					}
					if _, err := swap.Recv(); err != io.EOF {
						t.Errorf("it ends with %v", err)
					}
					fill, err := s.api.Fill(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := fill.CloseAndRecv(); fulmar.CodeOf(err) != fulmar.NotFound {
						t.Errorf("a stream that fails at once: %v", err)
					}
				})
			})
		}
	}
}

// TestForwardStreams_CallsInGRPC: in gRPC a call with one message each way looks like a
// stream, and is passed on as one.
func TestForwardStreams_CallsInGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throughProxy(t, "grpc", "grpc", &feed{}, fulmar.ServerConfig{
			UnknownHandler: func(context.Context, fulmar.Raw) (fulmar.Raw, error) {
				t.Error("the handler of calls was called")
				return nil, nil
			},
		})
		sum, err := testservice.NewCalculatorClient(s.client).Add(t.Context(), 3, 4)
		if err != nil || sum != 7 {
			t.Errorf("3 and 4 are %d, %v", sum, err)
		}
		method, err := fulmar.RawMethod("Calculator", "divide", false)
		if err != nil {
			t.Fatal(err)
		}
		err = s.client.Call(t.Context(), method, &fulmar.Raw{0}, new(fulmar.Raw))
		if failed := asError(t, err); failed.Code() != fulmar.Unimplemented || failed.Executed() != fulmar.ExecutedNo {
			t.Errorf("a method that no server has: %v", err)
		}
	})
}

// TestForwardStreams_RequestThatCannotGoOn: what keeps a message of the caller from the
// server is how the call ends.
func TestForwardStreams_RequestThatCannotGoOn(t *testing.T) {
	waits := &feed{swap: func(stream fulmar.BidiStreamingServer[testservice.Item, testservice.Item]) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	refuse := func(ctx context.Context, call fulmar.Stream, next fulmar.StreamNext) error {
		call.OnRecv(func(message any) error {
			switch raw := *message.(*fulmar.Raw); {
			case strings.Contains(string(raw), "refused"):
				return fulmar.NewError(fulmar.PermissionDenied, "no such words")
			case strings.Contains(string(raw), "panics"):
				panic("a secret")
			}
			return nil
		})
		return next(ctx, call)
	}
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			s := throughProxy(t, way, way, waits, fulmar.ServerConfig{StreamInterceptors: []fulmar.StreamInterceptor{refuse}})
			for text, want := range map[string]fulmar.Code{"refused": fulmar.PermissionDenied, "panics": fulmar.Internal} {
				swap, err := s.api.Swap(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := swap.Send(&testservice.Item{Name: text}); err != nil {
					t.Error(err)
				}
				_, err = swap.Recv()
				if fulmar.CodeOf(err) != want || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %s: %v", way, text, err)
				}
			}
		})
	}
}

// TestUnknownStreamHandler_OfItsOwn: it sees what is called, and may answer itself.
func TestUnknownStreamHandler_OfItsOwn(t *testing.T) {
	handler := func(ctx context.Context, messages *fulmar.ServerMessages) error {
		call, ok := fulmar.CallFrom(ctx)
		if !ok || call.Service() != "Feed" || call.Method() != "swap" || call.PayloadCodec() != fulmar.PayloadThrift {
			return fulmar.NewError(fulmar.FailedPrecondition, call.Service()+"."+call.Method())
		}
		var message fulmar.Raw
		if err := messages.Recv(&message); err != nil {
			return err
		}
		return messages.Send(&message)
	}
	for _, way := range directWays {
		synctest.Test(t, func(t *testing.T) {
			s := newStreamingOf(t, way, func(*fulmar.Server) {}, fulmar.ServerConfig{UnknownStreamHandler: handler}, fulmar.ClientConfig{})
			swap, err := s.api.Swap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := swap.Send(&testservice.Item{Name: "it"}); err != nil {
				t.Error(err)
			}
			if got, err := swap.Recv(); err != nil || got.Name != "it" {
				t.Errorf("%s: %v, %v", way, got, err)
			}
			if _, err := swap.Recv(); err != io.EOF {
				t.Errorf("%s: it ends with %v", way, err)
			}
		})
	}
}

// TestUnknownStreams_AreRefused where only calls that are unknown are taken; in gRPC nothing
// tells them apart.
func TestUnknownStreams_AreRefused(t *testing.T) {
	handler := func(context.Context, fulmar.Raw) (fulmar.Raw, error) {
		t.Error("the handler of calls was called")
		return nil, nil
	}
	for _, config := range []fulmar.ServerConfig{{}, {UnknownHandler: handler}} {
		for _, way := range []string{"ttheader", "local"} {
			synctest.Test(t, func(t *testing.T) {
				s := newStreamingOf(t, way, func(*fulmar.Server) {}, config, fulmar.ClientConfig{})
				swap, err := s.api.Swap(t.Context())
				if err == nil {
					_, err = swap.Recv()
				}
				if failed := asError(t, err); failed.Code() != fulmar.Unimplemented || failed.Executed() != fulmar.ExecutedNo {
					t.Errorf("%s: %v", way, err)
				}
			})
		}
	}
}
