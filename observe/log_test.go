package observe_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/observe"
)

// logging returns an Observer that logs and what it writes, line by line.
func logging(config observe.LogConfig) (o observe.Observer, lines func() []string) {
	var text bytes.Buffer
	o = observe.Log(slog.New(slog.NewTextHandler(&text, nil)), config)
	return o, func() []string { return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") }
}

func wantParts(t *testing.T, line string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(line, part) {
			t.Errorf("the line has no %q: %s", part, line)
		}
	}
}

var place = &observe.Call{ID: 0xabc, Side: observe.Server, Service: "Orders", Method: "place", Peer: "10.0.0.7:4242"}

func TestLog_TellsWhatWentWrong(t *testing.T) {
	o, lines := logging(observe.LogConfig{})
	tell(o, place, observe.Event{At: time.Millisecond})
	tell(o, place, observe.Event{At: time.Millisecond, Code: 2, Declared: true, Err: errors.New("sold out")})
	tell(o, place, observe.Event{At: 2 * time.Millisecond, Code: 5, Err: errors.New("nothing there"), Executed: "yes", Attempt: 2})
	tell(o, place, observe.Event{At: limits.SlowCall})
	o.Connection(observe.Connection{Kind: observe.ConnectionOpened, Peer: "a"})
	o.Connection(observe.Connection{Kind: observe.ConnectionClosed, Peer: "a"})
	o.Connection(observe.Connection{Kind: observe.ConnectionClosed, Peer: "b", Err: errors.New("reset")})
	o.Connection(observe.Connection{Kind: observe.ConnectionFailed, Peer: "c", Err: errors.New("refused")})
	o.Connection(observe.Connection{Kind: observe.ConnectionRefused, Peer: "d", Err: errors.New("HTTP")})
	got := lines()
	if len(got) != 5 {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	wantParts(t, got[0], `level=WARN msg="call failed" side=server method=Orders.place peer=10.0.0.7:4242 took=2ms code="not found" call=abc attempts=2 executed=yes reason="nothing there"`)
	wantParts(t, got[1], `msg="call slow"`, "took=1s", "code=ok")
	wantParts(t, got[2], `msg="connection broke"`, "peer=b", "reason=reset")
	wantParts(t, got[3], `msg="connection failed"`, "peer=c", "reason=refused")
	wantParts(t, got[4], `msg="connection refused"`, "peer=d", "reason=HTTP")
}

func TestLog_HasASlowLimit(t *testing.T) {
	for _, test := range []struct {
		slow time.Duration
		want int
	}{{0, 1}, {time.Millisecond, 2}, {-1, 0}} {
		o, lines := logging(observe.LogConfig{Slow: test.slow})
		tell(o, place, observe.Event{At: 5 * time.Millisecond})
		tell(o, place, observe.Event{At: time.Minute})
		if got := strings.Count(strings.Join(lines(), "\n"), "call slow"); got != test.want {
			t.Errorf("Slow %v: %d lines, want %d", test.slow, got, test.want)
		}
	}
}

func TestLog_BoundsLinesOfOneKind(t *testing.T) {
	for _, test := range []struct{ perSecond, want int }{{0, limits.PeerLogsPerSecond}, {3, 3}, {-1, 50}} {
		synctest.Test(t, func(t *testing.T) {
			o, lines := logging(observe.LogConfig{PerSecond: test.perSecond})
			failed := observe.Event{Code: 5, Err: errors.New("no")}
			for range 50 {
				tell(o, place, failed)
			}
			if got := len(lines()); got != test.want {
				t.Errorf("PerSecond %d: %d lines, want %d", test.perSecond, got, test.want)
			}
			tell(o, place, observe.Event{At: time.Hour})
			time.Sleep(time.Second)
			tell(o, place, failed)
			got := lines()
			wantParts(t, got[len(got)-2], "call slow") // another kind has a limit of its own
			if test.want < 50 {
				wantParts(t, got[len(got)-1], "suppressed=")
			}
		})
	}
}

// handler keeps texts as they come, without the quoting of slog's handlers.
type handler struct {
	slog.Handler
	texts []string
}

func TestLog_TextsOfPeersAreHarmless(t *testing.T) {
	evil := "\x1b[2J\nlevel=ERROR msg=forged\r\x00\u202e\xff" + strings.Repeat("a\n", 10_000)
	h := &handler{}
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		h.texts = append(h.texts, a.Value.String())
		return a
	}}
	var out bytes.Buffer
	o := observe.Log(slog.New(slog.NewTextHandler(&out, options)), observe.LogConfig{})
	tell(o, &observe.Call{Service: evil, Method: evil, Peer: evil}, observe.Event{Code: 5, Err: errors.New(evil)})
	o.Connection(observe.Connection{Kind: observe.ConnectionRefused, Peer: evil, Err: errors.New(evil)})
	cut := 0
	for _, text := range h.texts {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("the log gets %q", text)
		}
		if len(text) > limits.LogTextBytes+len("...") {
			t.Errorf("the log gets a text of %d bytes", len(text))
		}
		if strings.HasSuffix(text, "...") {
			cut++
		}
	}
	if cut != 5 {
		t.Errorf("%d texts were cut, want 5: %q", cut, h.texts)
	}
}

// TestLog_UsesTheDefaultLogger: without one.
func TestLog_UsesTheDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	tell(observe.Log(nil, observe.LogConfig{}), place, observe.Event{At: time.Hour})
	wantParts(t, text.String(), "call slow")
}
