package gen

import (
	"errors"
	"flag"
)

// ViewMethods says which of the structs that methods take and return are views.
type ViewMethods string

// What can be views.
const (
	// ViewMethodsRequest is for what methods take.
	ViewMethodsRequest ViewMethods = "request"
	// ViewMethodsResponse is for what they return.
	ViewMethodsResponse ViewMethods = "response"
	// ViewMethodsBoth is for both.
	ViewMethodsBoth ViewMethods = "both"
)

var errViewMethods = errors.New("expected request, response or both")

func (m ViewMethods) check() error {
	switch m {
	case "", ViewMethodsRequest, ViewMethodsResponse, ViewMethodsBoth:
		return nil
	default:
		return errViewMethods
	}
}

// viewMethodsValue is the value of a flag for ViewMethods.
type viewMethodsValue ViewMethods

var _ flag.Value = (*viewMethodsValue)(nil)

// Type is how help texts call the value.
func (v *viewMethodsValue) Type() string { return "request|response|both" }

// String is empty as long as nothing was chosen, so that help texts show no default.
func (v *viewMethodsValue) String() string { return string(*v) }

// Set replaces the value.
func (v *viewMethodsValue) Set(text string) error {
	if ViewMethods(text).check() != nil || text == "" {
		return errViewMethods
	}
	*v = viewMethodsValue(text)
	return nil
}
