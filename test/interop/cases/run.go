package cases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/test/interop/notation"
)

// eventuallyLimit bounds how long a step that may take a moment is repeated.
const eventuallyLimit = 30 * time.Second

// Library is what a Runner has to know about the library that generated a
// client.
type Library interface {
	// Method returns the method of the generated client.
	Method(name string) (Method, error)
	// Call prepares a call with this metadata.
	Call(persistent, transient map[string]string) Call
	// Explain sorts what the generated client returned as an error.
	Explain(err error) Failure
}

// Call is what a call takes beside its arguments.
type Call struct {
	Context context.Context
	// Options are what the generated method takes behind the arguments.
	Options []any
	// Backward returns the metadata of the reply; nil if the library has none.
	Backward func() map[string]string
}

// Method is a method of a generated client.
type Method struct {
	// Call is the function; the first parameter is the context, the last result
	// the error.
	Call reflect.Value
	// Arguments are the names of the IDL, in the order of the parameters.
	Arguments []string
}

// ArgumentNames returns the names in a generated struct for arguments: its
// fields are in the order of the method.
func ArgumentNames(arguments reflect.Type) []string {
	names := make([]string, arguments.NumField())
	for i := range names {
		names[i] = notation.FieldName(arguments.Field(i))
	}
	return names
}

// Failure is an error, sorted. At most one field is set.
type Failure struct {
	// Declared is the exception, a pointer to a generated struct.
	Declared reflect.Value
	// Exception is the type of an application exception.
	Exception int32
	Business  *Business
	// Closed says that the peer closed the connection without a reply.
	Closed bool
}

// Runner makes the calls of cases through a generated client.
type Runner struct {
	Library Library
	Types   notation.Types
	// Server is the name of the peer that is called.
	Server string
	// Unique stands for "$unique" in arguments and results.
	Unique string
}

// Run runs the steps of a case and returns what is wrong with the first that
// differs, and with those in the background.
func (r *Runner) Run(c Case) error {
	var background []chan error
	err := r.steps(c.All(), func(run func() error) {
		outcome := make(chan error, 1)
		background = append(background, outcome)
		go func() { outcome <- run() }()
	})
	for _, outcome := range background {
		err = errors.Join(err, <-outcome)
	}
	return err
}

func (r *Runner) steps(steps []Step, start func(run func() error)) error {
	for i, step := range steps {
		run := func() error {
			if err := r.step(step); err != nil {
				return fmt.Errorf("step %d, %s: %w", i+1, step.Method, err)
			}
			return nil
		}
		if step.Background {
			start(run)
		} else if err := run(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) step(s Step) error {
	end := time.Now().Add(eventuallyLimit)
	for {
		answer, err := r.call(s)
		if err != nil {
			return err
		}
		err = r.compare(s, answer)
		if err == nil || !s.Eventually || time.Now().After(end) {
			return err
		}
	}
}

// answer is what came back from one call.
type answer struct {
	result   reflect.Value
	failure  error
	backward map[string]string
}

// call makes the call; err says that there is no such call.
func (r *Runner) call(s Step) (a answer, err error) {
	method, err := r.Library.Method(s.Method)
	if err != nil {
		return a, err
	}
	call := r.Library.Call(s.Persistent, s.Transient)
	arguments := []reflect.Value{reflect.ValueOf(call.Context)}
	for i, name := range method.Arguments {
		argument := reflect.New(method.Call.Type().In(i + 1)).Elem()
		if err := r.Types.Fill(argument, notation.Expand(s.Arguments[name], r.Unique)); err != nil {
			return a, fmt.Errorf("argument %s: %w", name, err)
		}
		arguments = append(arguments, argument)
	}
	for _, option := range call.Options {
		arguments = append(arguments, reflect.ValueOf(option))
	}
	results := method.Call.Call(arguments)
	a.failure, _ = results[len(results)-1].Interface().(error)
	if len(results) == 2 {
		a.result = results[0]
	}
	if call.Backward != nil {
		a.backward = call.Backward()
	}
	return a, nil
}

func (r *Runner) compare(s Step, a answer) error {
	var failure Failure
	if a.failure != nil {
		failure = r.Library.Explain(a.failure)
	}
	if err := compareBackward(s, a.backward); err != nil {
		return err
	}
	switch {
	case slices.Contains(s.Closes, r.Server):
		// If it is about the failure of an earlier oneway call, the client may
		// have noticed in time and taken another connection.
		if a.failure == nil && s.Fails == 0 || failure.Closed {
			return nil
		}
		return fmt.Errorf("expected a closed connection, got %v", a.failure)
	case s.Throws != nil:
		return r.compareException(s.Throws, failure, a.failure)
	case s.Fails != 0:
		if failure.Exception != s.Fails {
			return fmt.Errorf("expected an application exception of type %d, got %v", s.Fails, a.failure)
		}
		return nil
	case s.Business != nil:
		return compareBusiness(s.Business, failure.Business, a.failure)
	case a.failure != nil:
		return fmt.Errorf("unexpected failure: %w", a.failure)
	case !a.result.IsValid():
		return nil
	}
	return r.Types.Match(notation.Expand(s.Result, r.Unique), a.result)
}

func compareBackward(s Step, got map[string]string) error {
	for key, value := range s.Backward {
		if got[key] != value {
			return fmt.Errorf("expected %s = %q in the metadata of the reply, got %v", key, value, got)
		}
	}
	return nil
}

func compareBusiness(want, got *Business, failure error) error {
	if got == nil || got.Code != want.Code || got.Message != want.Message || !maps.Equal(got.Extra, want.Extra) {
		return fmt.Errorf("expected the business error %+v, got %+v (%v)", *want, got, failure)
	}
	return nil
}

func (r *Runner) compareException(throws map[string]any, got Failure, failure error) error {
	for name, members := range throws {
		if got.Declared.IsValid() && got.Declared.Type().Elem().Name() == name {
			return r.Types.Match(members, got.Declared)
		}
		return fmt.Errorf("expected %s, got %v", name, failure)
	}
	return errors.New("the case names no exception")
}

// GeneratedName returns the method of a generated interface that has the name
// of the IDL apart from its capitals.
func GeneratedName(of reflect.Type, name string) (string, bool) {
	for i := range of.NumMethod() {
		if found := of.Method(i).Name; strings.EqualFold(found, name) {
			return found, true
		}
	}
	return "", false
}

// Outcome is what a peer says about one case: a line of JSON.
type Outcome struct {
	Case   string `json:"case"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}
