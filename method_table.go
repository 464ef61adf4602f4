package fulmar

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/policy"
)

// methodTable finds methods by their name on the wire: "method", or
// "Service:method" as Apache Thrift's multiplexed protocol writes it, and by the
// service if the protocol names it. Names are compared exactly. It does not
// change while it is asked.
type methodTable struct {
	methods  map[methodKey]*methodEntry
	services map[string]map[string]*methodEntry
}

// methodKey is what a call says where no service is named. A call in one encoding cannot
// be meant for a method that takes the other.
type methodKey struct {
	name    string
	payload PayloadCodec
}

type methodEntry struct {
	method         *MethodDesc
	implementation any
	// unknown: it is not registered, and a peer has made its name up.
	unknown bool
	// forTools: its service is for probes and tools.
	forTools bool
	// services are those that have a method of this name, if several do.
	services []string
	// limiter and serviceLimiter are those of policies; nil if it is not registered: then
	// the governor finds those that a document has by name.
	limiter, serviceLimiter *policy.Limiter
	// states holds *unaryState with messages, of a method with InvokeInto.
	states sync.Pool
}

// servesTools is what implementations have that are for probes and tools, in packages health
// and reflection. Such callers never have enough, and lose nothing when a graceful stop ends
// their streams. They speak gRPC, so the methods are found by the name of the service only,
// and a List or Check of a user is not confused with them where nobody says that name.
type servesTools interface{ ServesTools() }

func newMethodTable() methodTable {
	return methodTable{methods: map[methodKey]*methodEntry{}, services: map[string]map[string]*methodEntry{}}
}

// add puts all methods of a service into the table. It returns the names of
// those that an earlier service has too, for calls in the same encoding.
func (t *methodTable) add(desc *ServiceDesc, implementation any) (ambiguous []string, err error) {
	if _, exists := t.services[desc.Name]; exists {
		return nil, fmt.Errorf("service %s is registered twice", desc.Name)
	}
	for _, method := range desc.Methods {
		// A lease ends with its call, and would begin anew with the next one that is read into
		// the same arguments.
		if method.InvokeInto != nil && method.lends(method.NewRequest()) {
			return nil, fmt.Errorf("method %s of service %s lends its arguments, and has InvokeInto, which uses them again", method.Name, desc.Name)
		}
	}
	service := map[string]*methodEntry{}
	t.services[desc.Name] = service
	_, tools := implementation.(servesTools)
	for _, method := range desc.Methods {
		entry := &methodEntry{method: method, implementation: implementation, forTools: tools, services: []string{desc.Name}}
		service[method.Name] = entry
		t.methods[methodKey{desc.Name + ":" + method.Name, method.payload()}] = entry
		if tools {
			continue
		}
		key := methodKey{method.Name, method.payload()}
		if other, exists := t.methods[key]; exists {
			entry = &methodEntry{services: append(slices.Clone(other.services), desc.Name)}
			if !method.streams() || method.payload() == PayloadThrift { // Others are called over gRPC, which names services.
				ambiguous = append(ambiguous, method.Name)
			}
		}
		t.methods[key] = entry
	}
	return ambiguous, nil
}

// lookup returns the entry of a method, nil if there is none that can be called
// by this name. A service that is not known here does not count, as Kitex has
// it: its clients name the service that they were generated for, which may be
// an older name of it. It does if strict: then somebody else takes such calls.
func (t *methodTable) lookup(service, name []byte, payload PayloadCodec, strict bool) *methodEntry {
	if len(service) > 0 {
		if methods, known := t.services[string(service)]; known {
			if entry := methods[string(name)]; entry != nil || bytes.IndexByte(name, ':') < 0 {
				return entry.takes(payload)
			}
		} else if strict && bytes.IndexByte(name, ':') < 0 {
			return nil
		}
	}
	if entry := t.methods[methodKey{string(name), payload}]; entry != nil && entry.method != nil {
		return entry
	}
	return nil
}

// takes returns e if it takes calls in payload.
func (e *methodEntry) takes(payload PayloadCodec) *methodEntry {
	if e == nil || e.method.payload() != payload {
		return nil
	}
	return e
}

// missing explains why lookup found nothing; exact says that services count by their names.
func (t *methodTable) missing(service, name string, payload PayloadCodec, exact bool) error {
	_, known := t.services[service]
	if exact && !known {
		return unimplemented(thriftwire.ExceptionUnknownService, fmt.Sprintf("unknown service %q", service))
	}
	if entry := t.methods[methodKey{name, payload}]; !known && entry != nil && entry.method == nil {
		return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf(
			"method %q is in several services (%s): call it as \"Service:%s\"", name, strings.Join(entry.services, ", "), name))
	}
	other := PayloadProtobuf
	if payload == PayloadProtobuf {
		other = PayloadThrift
	}
	if entry := t.lookup([]byte(service), []byte(name), other, false); entry != nil {
		return unimplemented(thriftwire.ExceptionInvalidProtocol, fmt.Sprintf(
			"method %q takes calls in %v, this one is in %v", name, other, payload))
	}
	if known {
		return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf("unknown method %q of service %q", name, service))
	}
	if service, _, qualified := strings.Cut(name, ":"); qualified {
		if _, known := t.services[service]; !known {
			return unimplemented(thriftwire.ExceptionUnknownService, fmt.Sprintf("unknown service %q", service))
		}
	}
	if payload == PayloadProtobuf {
		return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf(
			"unknown method %q for calls in %v", name, payload))
	}
	return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf("unknown method %q", name))
}

func unimplemented(exception thriftwire.ExceptionType, message string) error {
	return &Error{code: Unimplemented, message: message, executed: ExecutedNo, exception: exception}
}
