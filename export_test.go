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

// CallContextShared reports whether the client may not use a context of NewCallContext
// for another call.
func CallContextShared(ctx context.Context) bool { return ctx.(*callContext).shared() }
