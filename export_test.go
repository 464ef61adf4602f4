package fulmar

import (
	"context"
	"time"
)

// NewCallContext makes the context of a call for its own tests.
func NewCallContext(parent context.Context, deadline time.Time) (ctx context.Context, finish func()) {
	c := &callContext{parent: parent, deadline: deadline}
	return c, c.finish
}
