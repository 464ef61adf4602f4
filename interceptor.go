package fulmar

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/observe"
)

// UnaryInterceptor wraps unary and oneway calls, on the client or the server.
// It calls next once to go on, or not at all to answer by itself; what it returns
// is the outcome. On the client it may call next again, one after the other, to
// try again. Several run in the order in which the configuration lists them, the
// first outermost.
//
// On the server those of ServerConfig.Interceptors run before the request is decoded,
// so refusing a call costs no decoding, and those of DecodedInterceptors after it.
type UnaryInterceptor func(ctx context.Context, call Unary, next UnaryNext) error

// UnaryNext goes on with a call.
type UnaryNext func(ctx context.Context, call Unary) error

// Unary is a call as interceptors see it. It must be used by one goroutine at a
// time. What its methods return stays valid, but for strings and binaries of a
// request with thrift.StringsScoped, and a Raw that is lent, which change when the call
// has ended.
type Unary struct{ state *unaryState }

type unaryState struct {
	side   Side
	method *MethodDesc
	// implementation is what the server calls.
	implementation any
	peer           string
	protocol       Protocol
	// On the client: what policies make of the call, how long it may take, whether the end
	// of the chain was reached, and whether an attempt may have been executed.
	governedCall
	limit   time.Duration
	invoked bool
	// fresh: nothing of a user's has run since start.
	fresh      bool
	mayHaveRun bool
	// chosen is what the options of the call say, waits that it waits for a connection.
	chosen CallOption
	waits  bool
	// On the server: whether the handler was called.
	handled bool
	request any
	// server decodes undecoded into request on first use; undecoded is nil once that
	// happened, and on the client.
	server    *Server
	undecoded *transport.Inbound
	decodeErr error
	reply     any
	// observed is for who observes the call; nil if nobody does.
	observed *observedCall
	// messages are those of a method with InvokeInto, on the server. The state keeps them for
	// the next call of the method.
	messages *reusedMessages
	// On the client: when the last attempt ended, if anybody has looked, which takes 50 ns.
	endedAt time.Time
}

// Side returns which end of the call this is.
func (u Unary) Side() Side { return u.state.side }

// Service returns the name of the service in the IDL.
func (u Unary) Service() string { return u.state.method.Service }

// Method returns the name of the method in the IDL.
func (u Unary) Method() string { return u.state.method.Name }

// Oneway reports whether the method has no reply.
func (u Unary) Oneway() bool { return u.state.method.Oneway }

// Protocol returns how the call is framed.
func (u Unary) Protocol() Protocol { return u.state.protocol }

// Peer returns the other side's address: the caller's on the server, the
// target on the client.
func (u Unary) Peer() string { return u.state.peer }

// Request returns the request message, a pointer to the generated arguments
// struct, or a *Raw. On the server the first use decodes it.
func (u Unary) Request() (any, error) {
	if in := u.state.undecoded; in != nil {
		u.state.undecoded = nil
		length := len(in.Body)
		u.state.request, u.state.decodeErr = u.state.server.decode(u.state, in)
		if u.state.decodeErr == nil {
			u.state.tell(observe.PhaseDecoded, length)
		}
	}
	return u.state.request, u.state.decodeErr
}

// Reply returns the reply message, a pointer to the generated result struct,
// once next has returned without an error; nil before that on the server, and
// for oneway methods.
func (u Unary) Reply() any { return u.state.reply }

// SetReply makes reply, a pointer to the method's generated result struct, the
// reply of a call that the interceptor answers by itself. Server only: on the
// client fill in what Reply points to.
func (u Unary) SetReply(reply any) error {
	if u.state.side != SideServer {
		return fmt.Errorf("fulmar: SetReply on the client side of %s", u.state.method.fullName())
	}
	u.state.reply = reply
	return nil
}

// OnlyFor returns an interceptor that runs for some calls only: those of the
// named services ("Orders") and methods ("Orders.place"), by their names in the
// IDL, which are compared exactly. Other calls go on without it; with no names
// that is every call.
//
// Take the names from the constants of the generated code, OrdersServiceName and
// OrdersPlaceFullMethodName: a name that is misspelt, or that the IDL no longer
// has, guards nothing, and with a constant it does not compile. An inherited
// method belongs to the service that is served or called: if Orders extends
// Base, its calls are those of OrdersPingFullMethodName and OrdersServiceName,
// and no name of Base chooses them.
//
// Methods that are defined in Protobuf have a slash before their name, as gRPC has
// them: "shop.v1.Orders/Place".
//
// OnlyFor panics if interceptor is nil, or a name is none that an IDL could
// have, such as "", "Orders." or "Orders:place": letters, digits and
// underscores, with dots between.
func OnlyFor(interceptor UnaryInterceptor, names ...string) UnaryInterceptor {
	if interceptor == nil {
		panic("fulmar: OnlyFor: the interceptor is nil")
	}
	chosen := chooseNames("OnlyFor", names)
	return func(ctx context.Context, call Unary, next UnaryNext) error {
		if !chosen.has(call.Service(), call.Method()) {
			return next(ctx, call)
		}
		return interceptor(ctx, call, next)
	}
}

// chosenNames are services, without a method, and methods that an interceptor runs for.
type chosenNames map[chosenName]struct{}

type chosenName struct{ service, method string }

func chooseNames(function string, names []string) chosenNames {
	chosen := make(chosenNames, 2*len(names))
	for _, text := range names {
		if !qualifiedName.MatchString(text) {
			panic(fmt.Sprintf("fulmar: %s: %q cannot be the name of a service or method (want one like \"Orders\" or \"Orders.place\")", function, text))
		}
		if service, method, slash := strings.Cut(text, "/"); slash {
			chosen[chosenName{service, method}] = struct{}{}
			continue
		}
		chosen[chosenName{service: text}] = struct{}{}
		if dot := strings.LastIndexByte(text, '.'); dot >= 0 {
			chosen[chosenName{text[:dot], text[dot+1:]}] = struct{}{}
		}
	}
	return chosen
}

func (c chosenNames) has(service, method string) bool {
	_, found := c[chosenName{service: service}]
	if !found {
		_, found = c[chosenName{service, method}]
	}
	return found
}

// qualifiedName matches what can name a service or a method. A service's name
// has dots where it includes its package, as with gRPC.
var qualifiedName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*(/[A-Za-z_][A-Za-z0-9_]*)?$`)

// decodeBefore decodes the request before next runs.
func decodeBefore(next UnaryNext) UnaryNext {
	return func(ctx context.Context, call Unary) error {
		if _, err := call.Request(); err != nil {
			return err
		}
		return next(ctx, call)
	}
}

// chain puts interceptors around last, once, when a server or client is made.
func chain(interceptors []UnaryInterceptor, last UnaryNext) UnaryNext {
	next := last
	for i := len(interceptors) - 1; i >= 0; i-- {
		interceptor, inner := interceptors[i], next
		next = func(ctx context.Context, call Unary) error { return interceptor(ctx, call, inner) }
	}
	return next
}

// checkInterceptors returns what is wrong with those of a configuration.
func checkInterceptors[I UnaryInterceptor | StreamInterceptor](field string, list []I) (problems []error) {
	for i, interceptor := range list {
		if interceptor == nil {
			problems = append(problems, fmt.Errorf("%s[%d] is nil", field, i))
		}
	}
	return problems
}
