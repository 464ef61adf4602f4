package fulmar

import (
	"fmt"
	"maps"

	"github.com/fulmar-rpc/fulmar/internal/transport"
)

// BusinessError is a failure that the IDL does not declare but that belongs to
// the service all the same: a number that caller and service agree on, a text,
// and details. Kitex calls it a business status error. Both ends need TTHeader
// for it; to other callers it goes as an Error with the number in its text. It
// is immutable.
type BusinessError struct {
	status  int32
	message string
	extra   map[string]string
}

// NewBusinessError returns an error for a handler to return. The status must not
// be 0, which means success on the wire: the call then fails as Internal. extra
// is copied and may be nil.
func NewBusinessError(status int32, message string, extra map[string]string) *BusinessError {
	return &BusinessError{status: status, message: message, extra: maps.Clone(extra)}
}

// Status returns the number.
func (e *BusinessError) Status() int32 { return e.status }

// Message returns the text.
func (e *BusinessError) Message() string { return e.message }

// Extra returns a copy of the details, nil if there are none.
func (e *BusinessError) Extra() map[string]string { return maps.Clone(e.extra) }

// Error returns "business error 1001: limit reached".
func (e *BusinessError) Error() string {
	if e == nil {
		// A handler that returns a typed nil.
		return "nil *fulmar.BusinessError"
	}
	return fmt.Sprintf("business error %d: %s", e.status, e.message)
}

// businessStatus returns the error as it travels.
func (e *BusinessError) businessStatus() *transport.BusinessStatus {
	return &transport.BusinessStatus{Status: e.status, Message: e.message, Extra: e.extra}
}
