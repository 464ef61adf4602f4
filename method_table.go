package fulmar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
)

// methodTable finds methods by their name on the wire: "method", or
// "Service:method" as Apache Thrift's multiplexed protocol writes it. Names are
// compared exactly. It does not change while it is asked.
type methodTable struct {
	methods  map[string]methodEntry
	services map[string]struct{}
}

type methodEntry struct {
	method         *MethodDesc
	implementation any
	// services are those that have a method of this name, if several do.
	services []string
}

func newMethodTable() methodTable {
	return methodTable{methods: map[string]methodEntry{}, services: map[string]struct{}{}}
}

// add puts all methods of a service into the table. It returns the names of
// those that an earlier service has too.
func (t *methodTable) add(desc *ServiceDesc, implementation any) (ambiguous []string, err error) {
	if _, exists := t.services[desc.Name]; exists {
		return nil, fmt.Errorf("service %s is registered twice", desc.Name)
	}
	t.services[desc.Name] = struct{}{}
	for _, method := range desc.Methods {
		entry := methodEntry{method: method, implementation: implementation, services: []string{desc.Name}}
		t.methods[desc.Name+":"+method.Name] = entry
		if other, exists := t.methods[method.Name]; exists {
			entry = methodEntry{services: append(slices.Clone(other.services), desc.Name)}
			ambiguous = append(ambiguous, method.Name)
		}
		t.methods[method.Name] = entry
	}
	return ambiguous, nil
}

// find returns the method of that name and the implementation to call.
func (t *methodTable) find(name string) (*MethodDesc, any, error) {
	entry, ok := t.methods[name]
	switch {
	case ok && entry.method != nil:
		return entry.method, entry.implementation, nil
	case ok:
		return nil, nil, unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf(
			"method %q is in several services (%s): call it as \"Service:%s\"", name, strings.Join(entry.services, ", "), name))
	}
	if service, _, qualified := strings.Cut(name, ":"); qualified {
		if _, known := t.services[service]; !known {
			return nil, nil, unimplemented(thriftwire.ExceptionUnknownService, fmt.Sprintf("unknown service %q", service))
		}
	}
	return nil, nil, unimplemented(thriftwire.ExceptionUnknownMethod, fmt.Sprintf("unknown method %q", name))
}

func unimplemented(exception thriftwire.ExceptionType, message string) error {
	return &Error{code: Unimplemented, message: message, executed: ExecutedNo, exception: exception}
}
