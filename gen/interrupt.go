package gen

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilInterrupted calls write with a context that Ctrl-C ends, so that what was prepared
// in the output folder is removed. At other times that ends the process as it always does:
// there is nothing to remove then, and reading definitions and plugins can take long.
func untilInterrupted(write func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return write(ctx)
}
