package fulmar

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// textCodec writes strings, with room for as much as is likely.
type textCodec struct{}

func (textCodec) AppendBody(out *linkbuf.Buffer, body any, m limits.Message) error {
	room := out.Room(m.LikelyBytes)
	text := body.(string)
	n := min(cap(room), len(text))
	out.Commit(append(room, text[:n]...))
	out.AppendString(text[n:])
	return nil
}

func (textCodec) ReadBody([]byte, any, limits.Message, bool) (bool, error) { return false, nil }

func TestMethodDesc_MessagesGetTheMemoryOfEarlierOnes(t *testing.T) {
	method := &MethodDesc{Codec: textCodec{}}
	pool := linkbuf.NewPool()
	pieces := func(bytes int) int {
		out := linkbuf.New(pool)
		defer out.Release()
		if err := method.encode(out, strings.Repeat("x", bytes), limits.DefaultMessage(), "m", &method.requests); err != nil {
			t.Fatal(err)
		}
		return len(out.Slices(nil))
	}
	if n := pieces(30_000); n < 2 {
		t.Fatalf("the first message has %d pieces: nothing was to be improved", n)
	}
	for range 3 {
		if n := pieces(30_000); n != 1 {
			t.Errorf("a message like the last one has %d pieces, want 1", n)
		}
	}
	if method.replies.likely.Load() != 0 {
		t.Error("requests count as replies")
	}
}

func TestSizeHistory_GrowsAtOnceAndForgetsSlowly(t *testing.T) {
	var h sizeHistory
	for _, step := range []struct{ bytes, want int64 }{{100, 100}, {1000, 1000}, {1010, 1000}, {200, 900}, {200, 813}, {0, 712}} {
		h.add(int(step.bytes))
		if got := h.likely.Load(); got != step.want {
			t.Errorf("after %d bytes %d are likely, want %d", step.bytes, got, step.want)
		}
	}
	for range 100 {
		h.add(0)
	}
	if got := h.likely.Load(); got > 16 {
		t.Errorf("after many empty messages %d bytes are likely", got)
	}
}
