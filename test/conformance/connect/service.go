package main

import (
	"context"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fulmar-rpc/fulmar"
	conformance "github.com/fulmar-rpc/fulmar/test/conformance/gen/connectrpc/conformance/v1"
)

// service answers as requests ask it to, and tells what it has seen of them.
type service struct{}

var _ conformance.ConformanceServiceServer = service{}

// Unary answers one message with one.
func (service) Unary(ctx context.Context, request *conformance.UnaryRequest) (*conformance.UnaryResponse, error) {
	payload, err := one(ctx, request, request.GetResponseDefinition())
	if err != nil {
		return nil, err
	}
	return &conformance.UnaryResponse{Payload: payload}, nil
}

// IdempotentUnary is Unary: gRPC has no GET.
func (service) IdempotentUnary(ctx context.Context, request *conformance.IdempotentUnaryRequest) (*conformance.IdempotentUnaryResponse, error) {
	payload, err := one(ctx, request, request.GetResponseDefinition())
	if err != nil {
		return nil, err
	}
	return &conformance.IdempotentUnaryResponse{Payload: payload}, nil
}

// Unimplemented is there because generated code wants it.
func (service) Unimplemented(context.Context, *conformance.UnimplementedRequest) (*conformance.UnimplementedResponse, error) {
	return nil, fulmar.NewError(fulmar.Unimplemented, "not implemented, as it should be")
}

// ClientStream answers many messages with one, as the first of them says.
func (service) ClientStream(stream fulmar.ClientStreamingServer[conformance.ClientStreamRequest, conformance.ClientStreamResponse]) error {
	seen := seeing(stream.Context())
	var definition *conformance.UnaryResponseDefinition
	for request, err := range stream.All() {
		if err != nil {
			return err
		}
		if len(seen.Requests) == 0 {
			definition = request.GetResponseDefinition()
		}
		if err := see(seen, request); err != nil {
			return err
		}
	}
	if err := stream.SendHeader(mapOf(definition.GetResponseHeaders())); err != nil {
		return err
	}
	payload, err := answer(stream.Context(), seen, definition)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&conformance.ClientStreamResponse{Payload: payload})
}

// ServerStream answers one message with many.
func (service) ServerStream(request *conformance.ServerStreamRequest, stream fulmar.ServerStreamingServer[conformance.ServerStreamResponse]) error {
	a := answers{stream: stream, definition: request.GetResponseDefinition(), seen: seeing(stream.Context())}
	a.send = func(payload *conformance.ConformancePayload) error {
		return stream.Send(&conformance.ServerStreamResponse{Payload: payload})
	}
	if err := see(a.seen, request); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	return a.rest()
}

// BidiStream answers many messages with many: each with one, or all when all are there.
func (service) BidiStream(stream fulmar.BidiStreamingServer[conformance.BidiStreamRequest, conformance.BidiStreamResponse]) error {
	a := answers{stream: stream, seen: seeing(stream.Context())}
	a.send = func(payload *conformance.ConformancePayload) error {
		return stream.Send(&conformance.BidiStreamResponse{Payload: payload})
	}
	alternate := false
	for first := true; ; first = false {
		request, err := stream.Recv()
		if err == io.EOF {
			return a.rest()
		}
		if err != nil {
			return err
		}
		if err := see(a.seen, request); err != nil {
			return err
		}
		if first {
			alternate, a.definition = request.GetFullDuplex(), request.GetResponseDefinition()
			if err := a.begin(); err != nil {
				return err
			}
		}
		if !alternate {
			continue
		}
		if a.sent == len(a.definition.GetResponseData()) {
			return a.rest()
		}
		if err := a.next(); err != nil {
			return err
		}
		// What follows tells only what has come since.
		a.seen = new(conformance.ConformancePayload_RequestInfo)
	}
}

// answers are those of a stream.
type answers struct {
	stream     fulmar.ServerStream
	send       func(*conformance.ConformancePayload) error
	definition *conformance.StreamResponseDefinition
	seen       *conformance.ConformancePayload_RequestInfo
	sent       int
}

// begin sends the headers at once, so that the client need not wait for a message.
func (a *answers) begin() error {
	if err := setTrailers(a.stream.Context(), a.definition.GetResponseTrailers()); err != nil {
		return err
	}
	return a.stream.SendHeader(mapOf(a.definition.GetResponseHeaders()))
}

// next sends the next message.
func (a *answers) next() error {
	if err := wait(a.stream.Context(), a.definition.GetResponseDelayMs()); err != nil {
		return err
	}
	payload := &conformance.ConformancePayload{Data: a.definition.GetResponseData()[a.sent]}
	if a.sent == 0 || len(a.seen.Requests) > 0 {
		payload.RequestInfo = a.seen
	}
	a.sent++
	return a.send(payload)
}

// rest sends the messages that are left, and returns how the stream is to end.
func (a *answers) rest() error {
	for a.sent < len(a.definition.GetResponseData()) {
		if err := a.next(); err != nil {
			return err
		}
		a.seen = new(conformance.ConformancePayload_RequestInfo)
	}
	switch failure := a.definition.GetError(); {
	case failure == nil:
		return nil
	case a.sent == 0:
		return toError(failure, a.seen)
	default:
		return toError(failure)
	}
}

// one answers a call of one message each way.
func one(ctx context.Context, request proto.Message, definition *conformance.UnaryResponseDefinition) (*conformance.ConformancePayload, error) {
	seen := seeing(ctx)
	if err := see(seen, request); err != nil {
		return nil, err
	}
	for key, values := range pairs(definition.GetResponseHeaders()) {
		if err := fulmar.SetReplyMetadata(ctx, key, values...); err != nil {
			return nil, err
		}
	}
	return answer(ctx, seen, definition)
}

// answer makes the one answer of a call.
func answer(ctx context.Context, seen *conformance.ConformancePayload_RequestInfo, definition *conformance.UnaryResponseDefinition) (*conformance.ConformancePayload, error) {
	if err := setTrailers(ctx, definition.GetResponseTrailers()); err != nil {
		return nil, err
	}
	if err := wait(ctx, definition.GetResponseDelayMs()); err != nil {
		return nil, err
	}
	if failure := definition.GetError(); failure != nil {
		return nil, toError(failure, seen)
	}
	return &conformance.ConformancePayload{Data: definition.GetResponseData(), RequestInfo: seen}, nil
}

func setTrailers(ctx context.Context, trailers []*conformance.Header) error {
	for key, values := range pairs(trailers) {
		if err := fulmar.SetReplyTrailer(ctx, key, values...); err != nil {
			return err
		}
	}
	return nil
}

// mapOf returns what a stream sends in front of its messages. Several values of a name are
// one with commas.
func mapOf(headers []*conformance.Header) map[string]string {
	all := map[string]string{}
	for key, values := range pairs(headers) {
		all[key] = strings.Join(values, ",")
	}
	return all
}

// seeing returns what a handler knows of its call before the first message.
func seeing(ctx context.Context) *conformance.ConformancePayload_RequestInfo {
	call, _ := fulmar.CallFrom(ctx)
	seen := &conformance.ConformancePayload_RequestInfo{RequestHeaders: headersOf(call.Metadata().AllTransient())}
	if deadline, ok := call.Deadline(); ok {
		left := max(time.Until(deadline), 0).Milliseconds()
		seen.TimeoutMs = &left
	}
	return seen
}

// see adds a request to what was seen.
func see(seen *conformance.ConformancePayload_RequestInfo, request proto.Message) error {
	packed, err := anypb.New(request)
	if err != nil {
		return err
	}
	seen.Requests = append(seen.Requests, packed)
	return nil
}
