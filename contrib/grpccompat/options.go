package grpccompat

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/policy"
)

// callOptions is what the options of a call ask for.
type callOptions struct {
	fulmar            []fulmar.CallOption
	headers, trailers []*metadata.MD
	credentials       []credentials.PerRPCCredentials
	finished          []func(error)
	// peers are to be told who was called, which explained knows then.
	peers     []*peer.Peer
	explained *policy.Explanation
	// sendMost and receiveMost bound messages, in bytes; 0 means no bound of their own.
	sendMost, receiveMost *int
}

// choose reads the options of a call. What it returns can be finished also with an error.
func (c *Client) choose(options []grpc.CallOption) (*callOptions, error) {
	o := new(callOptions)
	var refused error
	if c.config.Credentials != nil {
		o.credentials = append(o.credentials, c.config.Credentials)
	}
	for _, option := range options {
		if err := o.add(option); err != nil && refused == nil {
			refused = err
		}
	}
	return o, refused
}

// add adds one option.
func (o *callOptions) add(option grpc.CallOption) error {
	switch option := option.(type) {
	case grpc.EmptyCallOption, grpc.StaticMethodCallOption, grpc.MaxRetryRPCBufferSizeCallOption:
	case grpc.HeaderCallOption:
		o.headers = append(o.headers, option.HeaderAddr)
	case grpc.TrailerCallOption:
		o.trailers = append(o.trailers, option.TrailerAddr)
	case grpc.FailFastCallOption:
		o.fulmar = append(o.fulmar, fulmar.WaitForReady(!option.FailFast))
	case grpc.PeerCallOption:
		if o.explained == nil {
			o.explained = new(policy.Explanation)
			o.fulmar = append(o.fulmar, fulmar.Explain(o.explained))
		}
		o.peers = append(o.peers, option.PeerAddr)
	case grpc.CompressorCallOption:
		// For Fulmar "" is what the client is configured with, here it is none.
		o.fulmar = append(o.fulmar, fulmar.Compression(cmp.Or(option.CompressorType, "identity")))
	case grpc.MaxSendMsgSizeCallOption:
		o.sendMost = &option.MaxSendMsgSize
	case grpc.MaxRecvMsgSizeCallOption:
		o.receiveMost = &option.MaxRecvMsgSize
	case grpc.PerRPCCredsCallOption:
		o.credentials = append(o.credentials, option.Creds)
	case grpc.OnFinishCallOption:
		o.finished = append(o.finished, option.OnFinish)
	case grpc.ContentSubtypeCallOption:
		if option.ContentSubtype != "proto" {
			return status.Errorf(codes.Unimplemented, "grpccompat: content subtype %.40q: messages are in Protobuf", option.ContentSubtype)
		}
	default:
		if isOnlyForInterceptors(option) {
			return nil
		}
		return status.Errorf(codes.Unimplemented, "grpccompat: calls have no option %s", strings.TrimSuffix(fmt.Sprintf("%T", option), "CallOption"))
	}
	return nil
}

// isOnlyForInterceptors reports whether an option is one that grpc-go lets interceptors have
// for themselves: a struct around grpc.EmptyCallOption, which does nothing.
func isOnlyForInterceptors(option grpc.CallOption) bool {
	kind := reflect.TypeOf(option)
	if kind != nil && kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if kind == nil || kind.Kind() != reflect.Struct {
		return false
	}
	field, ok := kind.FieldByName("EmptyCallOption")
	return ok && field.Anonymous && field.Type == reflect.TypeFor[grpc.EmptyCallOption]()
}

// watched reports whether somebody waits for what a call has when it ends.
func (o *callOptions) watched() bool {
	return len(o.headers)+len(o.trailers)+len(o.finished)+len(o.peers) > 0
}

// returned hands over metadata of a reply.
func (o *callOptions) returned(header, trailer fulmar.Metadata) {
	for _, to := range o.headers {
		*to = returned(header)
	}
	for _, to := range o.trailers {
		*to = returned(trailer)
	}
}

// reached hands over who was called.
func (o *callOptions) reached(c *Client, err error) {
	if o.explained == nil {
		return
	}
	if called := c.called(o.explained, err); called != nil {
		for _, to := range o.peers {
			*to = *called
		}
	}
}

// finish tells who wants to know how the call ended.
func (o *callOptions) finish(err error) {
	for _, f := range o.finished {
		f(err)
	}
}

// checkSent refuses a message that is longer than the call allows.
func (o *callOptions) checkSent(message any) error {
	return checkSize("trying to send message larger than max", message, o.sendMost)
}

// checkReceived is the same for one that has come. While it arrives MaxMessageBytes bounds it.
func (o *callOptions) checkReceived(message any) error {
	return checkSize("received message larger than max", message, o.receiveMost)
}

func checkSize(what string, message any, most *int) error {
	m, ok := message.(proto.Message)
	if most == nil || !ok {
		return nil
	}
	if size := proto.Size(m); size > *most {
		return status.Errorf(codes.ResourceExhausted, "grpccompat: %s (%d vs. %d)", what, size, *most)
	}
	return nil
}

// another returns an empty message of the same type.
func another(message any) any {
	if m, ok := message.(proto.Message); ok {
		return m.ProtoReflect().New().Interface()
	}
	return message
}

// filled returns a message, for one that is nil an empty one: grpc-go sends no bytes for it, and
// handlers that have nothing to say return it.
func filled(message any) any {
	switch m := message.(type) {
	case nil:
		return new(emptypb.Empty) // as many bytes as an empty message of any type
	case proto.Message:
		if !m.ProtoReflect().IsValid() {
			return another(message)
		}
	}
	return message
}

// outgoing returns the context of a call, with what it carries: metadata, and that of its
// credentials.
func (c *Client) outgoing(ctx context.Context, method *fulmar.MethodDesc, name string, o *callOptions) (context.Context, error) {
	md, _ := metadata.FromOutgoingContext(ctx)
	for _, credential := range o.credentials {
		more, err := c.credentialOf(ctx, credential, method, name)
		if err != nil {
			return nil, err
		}
		md = metadata.Join(md, more)
	}
	return outgoing(ctx, md), nil
}

// credentialOf asks for the metadata that prove who calls.
func (c *Client) credentialOf(ctx context.Context, credential credentials.PerRPCCredentials, method *fulmar.MethodDesc, name string) (metadata.MD, error) {
	info := credentials.RequestInfo{Method: name}
	if c.config.secure() {
		info.AuthInfo = credentials.TLSInfo{CommonAuthInfo: secured()}
	} else if credential.RequireTransportSecurity() {
		return nil, status.Error(codes.Unauthenticated, "grpccompat: the credentials want transport security, and the client has no TLS")
	}
	authority := c.config.Service
	if authority == "" {
		authority = c.config.Target
	}
	audience := fmt.Sprintf("https://%s/%s", strings.TrimSuffix(authority, ":443"), method.Service)
	pairs, err := credential.GetRequestMetadata(credentials.NewContextWithRequestInfo(ctx, info), audience)
	if err != nil {
		if told, ok := status.FromError(err); ok {
			return nil, told.Err()
		}
		return nil, status.Errorf(codes.Unauthenticated, "grpccompat: the credentials have no metadata: %v", err)
	}
	md := metadata.MD{}
	for key, value := range pairs {
		md.Append(key, value)
	}
	return md, nil
}
