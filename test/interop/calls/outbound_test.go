package calls_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/notation"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// eventuallyLimit bounds how long a step that may take a moment is repeated.
const eventuallyLimit = 5 * time.Second

// A Fulmar client calls servers in Python.

func TestOutbound_PythonServersGetWhatTheRulesSay(t *testing.T) {
	cases := loadCases(t)
	eachPeer(t, peer.Runtimes(), func(t *testing.T, name, transport string) {
		runCases(t, cases, name, transport, peer.Serve(t, name, transport))
	})
}

// The same without Python: what fails here is not a matter of two
// implementations.
func TestOutbound_FulmarServerGetsWhatTheRulesSay(t *testing.T) {
	cases := loadCases(t)
	for transport := range protocols() {
		t.Run(transport, func(t *testing.T) {
			address, _ := serve(t, func(fulmar.Protocol) {})
			runCases(t, cases, "fulmar", transport, address)
		})
	}
}

func runCases(t *testing.T, cases caseFile, name, transport, address string) {
	runner := newRunner(t, name, transport, address)
	for _, c := range cases.Cases {
		if takesPart(c.Without, name) {
			t.Run(c.Name, func(t *testing.T) {
				for i, step := range c.all() {
					if err := runner.run(step); err != nil {
						t.Fatalf("step %d, %s: %v", i+1, step.Method, err)
					}
				}
			})
		}
	}
	for _, c := range cases.Raw {
		if takesPart(c.Without, name) {
			t.Run(c.Name, func(t *testing.T) { runRaw(t, c, transport, address) })
		}
	}
}

// runner makes the calls of cases through the generated clients.
type runner struct {
	server     string
	unique     string
	everything reflect.Value
	apache     reflect.Value
	methods    map[string]*fulmar.MethodDesc
	types      notation.Types
}

func newRunner(t *testing.T, server, transport, address string) *runner {
	t.Helper()
	all, apache := connect(t, address, transport)
	return &runner{
		server:     server,
		unique:     t.Name(),
		everything: reflect.ValueOf(all),
		apache:     reflect.ValueOf(apache),
		methods:    methods(),
		types:      types(),
	}
}

func (r *runner) run(s step) error {
	end := time.Now().Add(eventuallyLimit)
	for {
		result, failure, err := r.call(s)
		if err != nil {
			return err
		}
		err = r.compare(s, result, failure)
		if err == nil || !s.Eventually || time.Now().After(end) {
			return err
		}
	}
}

// call returns what the generated method returned; err says that there is no
// such call.
func (r *runner) call(s step) (result reflect.Value, failure, err error) {
	method, err := r.method(s.Method)
	if err != nil {
		return reflect.Value{}, nil, err
	}
	// The argument struct has the arguments in the order of the method, with
	// their names, which the method itself does not have.
	request := reflect.ValueOf(r.methods[s.Method].NewRequest()).Elem()
	arguments := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := range request.NumField() {
		name := notation.FieldName(request.Type().Field(i))
		argument := reflect.New(method.Type().In(i + 1)).Elem()
		if err := r.types.Fill(argument, notation.Expand(s.Arguments[name], r.unique)); err != nil {
			return reflect.Value{}, nil, fmt.Errorf("argument %s: %w", name, err)
		}
		arguments = append(arguments, argument)
	}
	results := method.Call(arguments)
	failure, _ = results[len(results)-1].Interface().(error)
	if len(results) == 2 {
		result = results[0]
	}
	return result, failure, nil
}

func (r *runner) method(name string) (reflect.Value, error) {
	for _, client := range []reflect.Value{r.everything, r.apache} {
		if found, ok := generatedName(client.Type(), name); ok {
			return client.MethodByName(found), nil
		}
	}
	return reflect.Value{}, fmt.Errorf("no client has the method %s", name)
}

func (r *runner) compare(s step, result reflect.Value, failure error) error {
	switch {
	case slices.Contains(s.Closes, r.server):
		return expectClosed(failure, s.Fails == 0)
	case s.Throws != nil:
		return r.expectException(s.Throws, failure)
	case s.Fails != 0:
		return expectFailure(s.Fails, failure)
	case failure != nil:
		return fmt.Errorf("unexpected failure: %w", failure)
	case !result.IsValid():
		return nil
	}
	return r.types.Match(notation.Expand(s.Result, r.unique), result)
}

// expectClosed accepts what a client says about a server that closes the
// connection instead of answering. If the failure is that of an earlier oneway
// call, the client may have noticed in time and taken another connection.
func expectClosed(failure error, mayHaveNoticed bool) error {
	if failure == nil && mayHaveNoticed {
		return nil
	}
	var e *fulmar.Error
	if !errors.As(failure, &e) || e.Code() != fulmar.Unavailable || e.Origin() != fulmar.OriginTransport {
		return fmt.Errorf("expected a closed connection, got %v", failure)
	}
	return nil
}

func (r *runner) expectException(throws map[string]any, failure error) error {
	for name, members := range throws {
		for _, exception := range exceptionsIn(failure) {
			if exception.Type().Elem().Name() == name {
				return r.types.Match(members, exception)
			}
		}
		return fmt.Errorf("expected %s, got %v", name, failure)
	}
	return errors.New("the case names no exception")
}

// exceptionsIn returns failure if it is a pointer to a struct, as generated
// exceptions are.
func exceptionsIn(failure error) []reflect.Value {
	value := reflect.ValueOf(failure)
	if failure == nil || value.Kind() != reflect.Pointer {
		return nil
	}
	return []reflect.Value{value}
}

// expectFailure compares an application exception with its type on the wire.
func expectFailure(exception int32, failure error) error {
	code := map[int32]fulmar.Code{1: fulmar.Unimplemented, 6: fulmar.Internal, 7: fulmar.InvalidArgument}[exception]
	var e *fulmar.Error
	if !errors.As(failure, &e) || e.Code() != code || e.Origin() != fulmar.OriginRemote || e.Message() == "" {
		return fmt.Errorf("expected %v from the peer, got %v", code, failure)
	}
	return nil
}

// runRaw sends a message that no client would send and a ping behind it, and
// compares every byte that comes back.
func runRaw(t *testing.T, c rawCase, transport, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	kind, seqID := byte(1), int32(1)
	if c.Raw.Type != nil {
		kind = *c.Raw.Type
	}
	if c.Raw.SeqID != nil {
		seqID = *c.Raw.SeqID
	}
	pong := message(transport, "ping", 2, 4711, "00")
	request := append(message(transport, c.Raw.Method, kind, seqID, c.requestBody()), message(transport, "ping", 1, 4711, "00")...)
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	replies, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	reply, found := strings.CutSuffix(string(replies), string(pong))
	if !found {
		t.Fatalf("no reply to the ping in % x", replies)
	}
	switch {
	case c.Nothing:
		if reply != "" {
			t.Errorf("got % x, want nothing", reply)
		}
	case c.Body != "":
		if want := message(transport, c.Raw.Method, 2, seqID, c.Body); reply != string(want) {
			t.Errorf("got % x, want % x", reply, want)
		}
	default:
		start := message("bare", c.Raw.Method, 3, seqID, "")
		end := fmt.Appendf(nil, "\x08\x00\x02%s\x00", binary.BigEndian.AppendUint32(nil, uint32(c.Exception)))
		if !strings.Contains(reply, string(start)) || !strings.HasSuffix(reply, string(end)) {
			t.Errorf("got % x, want % x ... % x", reply, start, end)
		}
	}
}

// message returns the bytes of a message whose body is given in hex.
func message(transport, name string, kind byte, seqID int32, body string) []byte {
	payload := []byte{0x80, 0x01, 0x00, kind}
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(name)))
	payload = append(payload, name...)
	payload = binary.BigEndian.AppendUint32(payload, uint32(seqID))
	content, err := hex.DecodeString(strings.Join(strings.Fields(body), ""))
	if err != nil {
		panic(err)
	}
	payload = append(payload, content...)
	if transport == "framed" {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
	}
	return payload
}
