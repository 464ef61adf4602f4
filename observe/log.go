package observe

import (
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/peerlog"
)

// LogConfig configures Log. 0 is the default, negative is off.
type LogConfig struct {
	// Slow is how long a call must take to be logged although it succeeded.
	// Default 1 s (SlowCall).
	Slow time.Duration
	// PerSecond bounds the lines of each kind in a second: failed calls, slow calls,
	// connections that failed, were refused, or broke. Default 10/s
	// (PeerLogsPerSecond); off is no bound.
	PerSecond int
}

// Log returns an Observer that logs what went wrong: calls that failed and calls
// that were slow, and connections that could not be opened, were refused, or broke.
// Answers that the IDL declares and business errors are no failures. The first line
// behind some that were left out says how many, as "suppressed".
//
// Texts are of at most 512 B (LogTextBytes) and have no control characters,
// whoever they are from. A nil logger is slog.Default().
func Log(logger *slog.Logger, config LogConfig) Observer {
	if logger == nil {
		logger = slog.Default()
	}
	const none = int(^uint(0) >> 1)
	l := &logging{
		log:  peerlog.NewLimited(logger, limits.Or(config.PerSecond, limits.PeerLogsPerSecond, none)),
		slow: limits.Or(config.Slow, limits.SlowCall, math.MaxInt64),
	}
	return Observer{Phases: SetOf(PhaseDone), Event: l.event, Connection: l.connection}
}

type logging struct {
	log  *peerlog.Log
	slow time.Duration
}

func (l *logging) event(call *Call, _ any, event Event) {
	message := "call slow"
	if event.Err != nil && !event.Declared {
		message = "call failed"
	} else if event.At < l.slow {
		return
	}
	l.log.WarnFunc(message, func() []any {
		method := call.Method
		if call.Service != "" {
			method = call.Service + "." + call.Method
		}
		attributes := []any{
			"side", call.Side.String(), "method", clean(method), "peer", clean(call.Peer),
			"took", event.At, "code", event.Code.String(), "call", strconv.FormatUint(call.ID, 16),
		}
		if event.Attempt > 1 {
			attributes = append(attributes, "attempts", event.Attempt)
		}
		if event.Err != nil {
			attributes = append(attributes, "executed", event.Executed, "reason", clean(event.Err.Error()))
		}
		return attributes
	})
}

func (l *logging) connection(c Connection) {
	if c.Err == nil || c.Kind == ConnectionOpened {
		return
	}
	message := [...]string{
		ConnectionFailed: "connection failed", ConnectionRefused: "connection refused", ConnectionClosed: "connection broke",
	}[c.Kind]
	l.log.WarnFunc(message, func() []any {
		return []any{"side", c.Side.String(), "peer", clean(c.Peer), "took", c.Took, "reason", clean(c.Err.Error())}
	})
}

// clean returns text as it may stand in a log: a peer may have written it. It is
// always another string: the memory of the text may be about to be reused.
func clean(text string) string {
	cut := len(text) > limits.LogTextBytes
	if cut {
		text = text[:limits.LogTextBytes]
	}
	if !printable(text) {
		// Escapes take up to ten bytes for one.
		quoted := strconv.Quote(text)
		text = quoted[1 : len(quoted)-1]
		if len(text) > limits.LogTextBytes {
			text, cut = text[:limits.LogTextBytes], true
		}
	}
	if cut {
		return text + "..."
	}
	return strings.Clone(text)
}

func printable(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
