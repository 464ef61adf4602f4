// Package testservice is a service whose handlers are fields, so that a test
// says in place what its server does. The rest of the package is generated.
//
// Only tests import it.
package testservice

import (
	"context"
	"errors"
)

//go:generate fulmar gen -o .. testservice.thrift

// Stub implements Echo. A field that is nil makes its method fail.
type Stub struct {
	OnVersion func(ctx context.Context) (string, error)
	OnEcho    func(ctx context.Context, message *Message) (*Message, error)
	OnAdd     func(ctx context.Context, left, right int32) (int32, error)
	OnNothing func(ctx context.Context) error
	OnNotify  func(ctx context.Context, text string) error
	OnScoped  func(ctx context.Context, message *Message) (*Message, error)
	OnWord    func(ctx context.Context, word, other string) (string, error)
}

var _ EchoServer = (*Stub)(nil)

var errNoHandler = errors.New("the test has no handler for this method")

// Version calls OnVersion.
func (s *Stub) Version(ctx context.Context) (string, error) {
	if s.OnVersion == nil {
		return "", errNoHandler
	}
	return s.OnVersion(ctx)
}

// Echo calls OnEcho, and returns the message itself without one.
func (s *Stub) Echo(ctx context.Context, message *Message) (*Message, error) {
	if s.OnEcho == nil {
		return message, nil
	}
	return s.OnEcho(ctx, message)
}

// Add calls OnAdd.
func (s *Stub) Add(ctx context.Context, left, right int32) (int32, error) {
	if s.OnAdd == nil {
		return 0, errNoHandler
	}
	return s.OnAdd(ctx, left, right)
}

// Nothing calls OnNothing.
func (s *Stub) Nothing(ctx context.Context) error {
	if s.OnNothing == nil {
		return errNoHandler
	}
	return s.OnNothing(ctx)
}

// Notify calls OnNotify.
func (s *Stub) Notify(ctx context.Context, text string) error {
	if s.OnNotify == nil {
		return errNoHandler
	}
	return s.OnNotify(ctx, text)
}

// Word calls OnWord, and returns the word without one.
func (s *Stub) Word(ctx context.Context, word, other string) (string, error) {
	if s.OnWord == nil {
		return word, nil
	}
	return s.OnWord(ctx, word, other)
}

// Scoped calls OnScoped, and returns the message itself without one.
func (s *Stub) Scoped(ctx context.Context, message *Message) (*Message, error) {
	if s.OnScoped == nil {
		return message, nil
	}
	return s.OnScoped(ctx, message)
}
