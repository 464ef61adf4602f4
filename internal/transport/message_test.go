package transport

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// TestOutgoing_BodyFollowsInOnePiece: a body as long as was likely lies behind its head, up
// to 64 KiB, and one that is longer behind as much of it.
func TestOutgoing_BodyFollowsInOnePiece(t *testing.T) {
	for _, body := range []int{0, 100, 2 << 10, 5000, roomMost} {
		o := outgoing{protocol: wire.Framed, name: "echo"}
		if err := o.begin(linkbuf.NewPool(), body); err != nil {
			t.Fatal(err)
		}
		o.Append([]byte(strings.Repeat("x", body)))
		if pieces := o.slices(nil); len(pieces) != 1 {
			t.Errorf("%d bytes as they were likely: %d pieces, want 1", body, len(pieces))
		}
		o.release()
	}
	o := outgoing{protocol: wire.Framed, name: "echo"}
	if err := o.begin(linkbuf.NewPool(), 1<<30); err != nil {
		t.Fatal(err)
	}
	if room := cap(o.Room(0)); room < roomMost || room > 2*roomMost {
		t.Errorf("a body that is said to be long has room for %d bytes, want %d", room, roomMost)
	}
	o.release()
}
