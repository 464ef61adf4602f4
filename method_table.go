package fulmar

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// methodTable finds methods by their name on the wire: "method", or
// "Service:method" as Apache Thrift's multiplexed protocol writes it, and by the
// service if the protocol names it. Names are compared exactly. It does not
// change while it is asked.
type methodTable struct {
	methods  map[string]*methodEntry
	services map[string]map[string]*methodEntry
}

type methodEntry struct {
	method         *MethodDesc
	implementation any
	// services are those that have a method of this name, if several do.
	services []string
}

func newMethodTable() methodTable {
	return methodTable{methods: map[string]*methodEntry{}, services: map[string]map[string]*methodEntry{}}
}

// add puts all methods of a service into the table. It returns the names of
// those that an earlier service has too.
func (t *methodTable) add(desc *ServiceDesc, implementation any) (ambiguous []string, err error) {
	if _, exists := t.services[desc.Name]; exists {
		return nil, fmt.Errorf("service %s is registered twice", desc.Name)
	}
	service := map[string]*methodEntry{}
	t.services[desc.Name] = service
	for _, method := range desc.Methods {
		entry := &methodEntry{method: method, implementation: implementation, services: []string{desc.Name}}
		service[method.Name] = entry
		t.methods[desc.Name+":"+method.Name] = entry
		if other, exists := t.methods[method.Name]; exists {
			entry = &methodEntry{services: append(slices.Clone(other.services), desc.Name)}
			ambiguous = append(ambiguous, method.Name)
		}
		t.methods[method.Name] = entry
	}
	return ambiguous, nil
}

// lookup returns the entry of a method, nil if there is none that can be called
// by this name. A service that is not known here does not count, as Kitex has
// it: its clients name the service that they were generated for, which may be
// an older name of it. It does if strict: then somebody else takes such calls.
func (t *methodTable) lookup(service, name []byte, strict bool) *methodEntry {
	if len(service) > 0 {
		if methods, known := t.services[string(service)]; known {
			if entry := methods[string(name)]; entry != nil || bytes.IndexByte(name, ':') < 0 {
				return entry
			}
		} else if strict && bytes.IndexByte(name, ':') < 0 {
			return nil
		}
	}
	if entry := t.methods[string(name)]; entry != nil && entry.method != nil {
		return entry
	}
	return nil
}

// missing explains why lookup found nothing, or nothing for calls in payload.
func (t *methodTable) missing(service, name string, payload PayloadCodec) error {
	if entry := t.lookup([]byte(service), []byte(name), false); entry != nil && entry.method.payload() != payload {
		return unimplemented(thriftwire.ExceptionInvalidProtocol, fmt.Sprintf(
			"method %q takes calls in %v, this one is in %v", name, entry.method.payload(), payload))
	}
	if _, known := t.services[service]; known {
		return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf("unknown method %q of service %q", name, service))
	}
	if entry, ok := t.methods[name]; ok {
		return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf(
			"method %q is in several services (%s): call it as \"Service:%s\"", name, strings.Join(entry.services, ", "), name))
	}
	if service, _, qualified := strings.Cut(name, ":"); qualified {
		if _, known := t.services[service]; !known {
			return unimplemented(thriftwire.ExceptionUnknownService, fmt.Sprintf("unknown service %q", service))
		}
	}
	if payload == PayloadProtobuf {
		return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf(
			"unknown method %q; calls in %v are served as bytes only, where that is asked for", name, payload))
	}
	return unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf("unknown method %q", name))
}

func unimplemented(exception thriftwire.ExceptionType, message string) error {
	return &Error{code: Unimplemented, message: message, executed: ExecutedNo, exception: exception}
}
