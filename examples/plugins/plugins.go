// Package plugins is an example of code that is generated with plugins: with
// programs that fulmar gen starts, and with a generator of this module.
package plugins

import (
	"context"
	"errors"
	"fmt"

	"github.com/fulmar-rpc/fulmar/examples/plugins/gen/rooms"
)

//go:generate fulmar gen -o gen --plugin mock --plugin validate rooms.thrift
//go:generate go run ./cmd/generate -o gen account.thrift

// BookFirst books the first of the rooms that is not taken.
func BookFirst(ctx context.Context, client rooms.RoomsClient, people int32, names ...string) (*rooms.Booking, error) {
	for _, name := range names {
		booking, err := client.Book(ctx, &rooms.BookRequest{Room: name, People: people})
		if taken := (*rooms.Taken)(nil); errors.As(err, &taken) {
			continue
		}
		return booking, err
	}
	return nil, fmt.Errorf("all of %d rooms are taken", len(names))
}
