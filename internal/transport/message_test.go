package transport

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/wire"
)

// TestOutgoing_BodyFollowsInOnePiece: a body as long as was likely lies behind its head. One
// that is long gets memory when it comes, and its head no more than it needs.
func TestOutgoing_BodyFollowsInOnePiece(t *testing.T) {
	for _, likely := range []int{0, 100, 2 << 10, 5000, roomMost - 100} {
		o := outgoing{protocol: wire.Framed, name: "echo"}
		if err := o.begin(linkbuf.NewPool(), likely); err != nil {
			t.Fatal(err)
		}
		o.Append([]byte(strings.Repeat("x", likely)))
		if pieces := o.slices(nil); len(pieces) != 1 {
			t.Errorf("%d bytes as they were likely: %d pieces, want 1", likely, len(pieces))
		}
		o.release()
	}
	for _, likely := range []int{roomMost, 64 << 10, 1 << 30} {
		o := outgoing{protocol: wire.Framed, name: "echo"}
		if err := o.begin(linkbuf.NewPool(), likely); err != nil {
			t.Fatal(err)
		}
		if room := cap(o.Room(0)); room > 2<<10 {
			t.Errorf("the head of a body that is said to have %d bytes has room for %d more", likely, room)
		}
		o.release()
	}
}
