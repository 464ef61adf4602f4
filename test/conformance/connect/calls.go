package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fulmar-rpc/fulmar"
	conformance "github.com/fulmar-rpc/fulmar/test/conformance/gen/connectrpc/conformance/v1"
)

// attempt is one call that the suite asks for.
type attempt struct {
	request *conformance.ClientCompatRequest
	client  conformance.ConformanceServiceClient
	options []fulmar.CallOption
	cancel  context.CancelFunc
	result  *conformance.ClientResponseResult
	// What the server has sent beside its messages.
	header, trailer fulmar.Metadata
}

// run makes the call. An error says that it could not be made; that the call has failed is
// part of the result.
func (a *attempt) run(ctx context.Context) error {
	a.options = append(a.options, fulmar.ReceiveReply(&a.header, &a.trailer))
	defer a.finish()
	switch method := a.request.GetMethod(); method {
	case "Unary":
		return single(ctx, a, new(conformance.UnaryRequest), a.client.Unary)
	case "IdempotentUnary":
		return single(ctx, a, new(conformance.IdempotentUnaryRequest), a.client.IdempotentUnary)
	case "Unimplemented":
		return single(ctx, a, new(conformance.UnimplementedRequest), a.client.Unimplemented)
	case "ServerStream":
		return a.serverStream(ctx)
	case "ClientStream":
		return a.clientStream(ctx)
	case "BidiStream":
		return a.bidiStream(ctx)
	default:
		return fmt.Errorf("method %q is not known", method)
	}
}

// --- when to cancel ---

// afterClose returns how long behind the last request the call is canceled. ok is false if it
// is not. Without any time given it is at once.
func (a *attempt) afterClose() (delay time.Duration, ok bool) {
	switch timing := a.request.GetCancel().GetCancelTiming().(type) {
	case *conformance.ClientCompatRequest_Cancel_AfterCloseSendMs:
		return time.Duration(timing.AfterCloseSendMs) * time.Millisecond, true
	case nil:
		return 0, a.request.GetCancel() != nil
	}
	return 0, false
}

// beforeClose reports whether the call is canceled in place of the end of the requests.
func (a *attempt) beforeClose() bool {
	return a.request.GetCancel().GetBeforeCloseSend() != nil
}

// cancelsNow reports whether the call is canceled behind the answers that there are.
func (a *attempt) cancelsNow() bool {
	after := a.request.GetCancel().GetAfterNumResponses()
	return after > 0 && int(after) == len(a.result.Payloads)
}

// --- what comes of it ---

func (a *attempt) failed(err error) {
	if a.result.Error == nil {
		a.result.Error = fromError(err)
	}
}

// took keeps an answer.
func (a *attempt) took(payload *conformance.ConformancePayload) {
	if payload == nil {
		payload = new(conformance.ConformancePayload)
	}
	a.result.Payloads = append(a.result.Payloads, payload)
}

// finish keeps the metadata of a call that has ended.
func (a *attempt) finish() {
	a.result.ResponseHeaders, a.result.ResponseTrailers = headersOf(a.header.All()), headersOf(a.trailer.All())
}

// unpack returns the requests of the call.
func unpack[Req proto.Message](packed []*anypb.Any, make func() Req) (requests []Req, err error) {
	for _, one := range packed {
		request := make()
		if err := one.UnmarshalTo(request); err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	return requests, nil
}

// only returns the one request of the call.
func (a *attempt) only(into proto.Message) error {
	if n := len(a.request.GetRequestMessages()); n != 1 {
		return fmt.Errorf("%d requests for a method that takes one", n)
	}
	return a.request.GetRequestMessages()[0].UnmarshalTo(into)
}

// --- the kinds of calls ---

// messageOf is a message of a generated type.
type messageOf[Res any] interface {
	*Res
	proto.Message
}

// single makes a call of one message each way.
func single[Req proto.Message, Res any, ResPtr messageOf[Res]](ctx context.Context, a *attempt, request Req,
	call func(context.Context, Req, ...fulmar.CallOption) (ResPtr, error),
) error {
	if err := a.only(request); err != nil {
		return err
	}
	if delay, ok := a.afterClose(); ok {
		timer := time.AfterFunc(delay, a.cancel)
		defer timer.Stop()
	}
	response, err := call(ctx, request, a.options...)
	if err != nil {
		a.failed(err)
	} else {
		withPayload, _ := any(response).(interface {
			GetPayload() *conformance.ConformancePayload
		})
		if withPayload != nil {
			a.took(withPayload.GetPayload())
		}
	}
	return nil
}

func (a *attempt) serverStream(ctx context.Context) error {
	request := new(conformance.ServerStreamRequest)
	if err := a.only(request); err != nil {
		return err
	}
	stream, err := a.client.ServerStream(ctx, request, a.options...)
	if err != nil {
		a.failed(err)
		return nil
	}
	if delay, ok := a.afterClose(); ok {
		_ = wait(ctx, uint32(delay.Milliseconds()))
		a.cancel()
	}
	receive(a, stream.Recv)
	return nil
}

// receive takes all answers that are left.
func receive[Res interface {
	GetPayload() *conformance.ConformancePayload
}](a *attempt, recv func() (Res, error)) {
	for {
		response, err := recv()
		if err == io.EOF {
			return
		}
		if err != nil {
			a.failed(err)
			return
		}
		a.took(response.GetPayload())
		if a.cancelsNow() {
			a.cancel()
		}
	}
}

func (a *attempt) clientStream(ctx context.Context) error {
	requests, err := unpack(a.request.GetRequestMessages(), func() *conformance.ClientStreamRequest { return new(conformance.ClientStreamRequest) })
	if err != nil {
		return err
	}
	stream, err := a.client.ClientStream(ctx, a.options...)
	if err != nil {
		a.failed(err)
		return nil
	}
	for i, request := range requests {
		// If the call ends meanwhile, Send says so.
		_ = wait(stream.Context(), a.request.GetRequestDelayMs())
		if err := stream.Send(request); err != nil {
			a.result.NumUnsentRequests = int32(len(requests) - i)
			if err != io.EOF {
				a.failed(err)
			}
			break
		}
	}
	if a.beforeClose() {
		a.cancel()
	} else if delay, ok := a.afterClose(); ok {
		timer := time.AfterFunc(delay, a.cancel)
		defer timer.Stop()
	}
	response, err := stream.CloseAndRecv()
	if err != nil {
		a.failed(err)
		return nil
	}
	a.took(response.GetPayload())
	return nil
}

func (a *attempt) bidiStream(ctx context.Context) error {
	requests, err := unpack(a.request.GetRequestMessages(), func() *conformance.BidiStreamRequest { return new(conformance.BidiStreamRequest) })
	if err != nil {
		return err
	}
	stream, err := a.client.BidiStream(ctx, a.options...)
	if err != nil {
		a.failed(err)
		return nil
	}
	alternate := a.request.GetStreamType() == conformance.StreamType_STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM
	for i, request := range requests {
		_ = wait(stream.Context(), a.request.GetRequestDelayMs())
		if err := stream.Send(request); err != nil {
			a.result.NumUnsentRequests = int32(len(requests) - i)
			if err != io.EOF {
				a.failed(err)
			}
			break
		}
		if !alternate {
			continue
		}
		response, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			a.failed(err)
			return nil
		}
		a.took(response.GetPayload())
		if a.cancelsNow() {
			a.cancel()
		}
	}
	if a.beforeClose() {
		a.cancel()
	}
	if err := stream.CloseSend(); err != nil && !errors.Is(err, io.EOF) {
		a.failed(err)
	}
	if delay, ok := a.afterClose(); ok {
		_ = wait(ctx, uint32(delay.Milliseconds()))
		a.cancel()
	}
	receive(a, stream.Recv)
	return nil
}
