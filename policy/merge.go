package policy

import (
	"maps"
	"reflect"
	"strings"
)

// Clone returns a document that shares nothing with d that can be changed.
func (d Document) Clone() Document {
	d.Client, d.Server = d.Client.Clone(), d.Server.Clone()
	return d
}

// Clone returns the same with a map of its own.
func (c Client) Clone() Client {
	c.Methods = maps.Clone(c.Methods)
	return c
}

// Clone returns the same with a map of its own.
func (s Server) Clone() Server {
	s.Methods = maps.Clone(s.Methods)
	return s
}

// For returns what holds for the calls of a method: field by field what is set for it,
// else for its service, else for all. It takes some microseconds, so whoever makes many calls
// asks once.
func (c Client) For(service, method string) Method {
	merged := c.Method
	for _, name := range scopes(service, method) {
		if set, ok := c.Methods[name]; ok {
			merged = merged.with(set)
		}
	}
	return merged
}

// Named returns as much of a method's name as a document speaks of: both parts, the service
// alone, or nothing. What For returns for it is what it returns for the method.
func (c Client) Named(service, method string) (namedService, namedMethod string) {
	names := scopes(service, method)
	for _, name := range names[1:] {
		if _, ok := c.Methods[name]; ok {
			return service, method
		}
	}
	if _, ok := c.Methods[names[0]]; ok {
		return service, ""
	}
	return "", ""
}

// For returns the limits that hold for the calls of a method besides those for all: one for
// the calls of its service together, and its own.
func (s Server) For(service, method string) (ofService, ofMethod Limit) {
	names := scopes(service, method)
	ofService = s.Methods[names[0]]
	for _, name := range names[1:] {
		if limit, ok := s.Methods[name]; ok {
			ofMethod = limit
		}
	}
	return ofService, ofMethod
}

// scopes returns the names under which a document may speak of a method, the widest first.
// Thrift writes "Orders.place" and gRPC "shop.v1.Orders/Place".
func scopes(service, method string) [3]string {
	return [3]string{service, service + "." + method, service + "/" + method}
}

// serviceOf returns the service of a method's name, "" if it can be that of a service only.
func serviceOf(name string) string {
	if service, _, ok := strings.Cut(name, "/"); ok {
		return service
	}
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return name[:dot]
	}
	return ""
}

// with returns m with what narrower sets.
func (m Method) with(narrower Method) Method {
	overlay(reflect.ValueOf(&m).Elem(), reflect.ValueOf(narrower))
	return m
}

// overlay copies what is not zero from one struct to another of the same type, and so for
// the structs in it.
func overlay(to, from reflect.Value) {
	for i := range from.NumField() {
		switch field := from.Field(i); {
		case field.Kind() == reflect.Struct:
			overlay(to.Field(i), field)
		case !field.IsZero():
			to.Field(i).Set(field)
		}
	}
}
