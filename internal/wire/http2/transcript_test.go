package http2_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// TestConn_Transcripts runs the conversations in testdata. A block is a connection
// of "server" or "client", whose preface and settings are exchanged before. In its
// lines the peer sends a frame,
//
//	DATA 1 end "abc"       HEADERS 1 end :method=GET ...     RST_STREAM 1 8
//	PING 7                 SETTINGS 4=100 ack                WINDOW_UPDATE 1 10
//	GOAWAY 3 0             raw 00 00 ...
//
// or the caller does something: "app headers 1 end :status=200", "app open end ...",
// "app data 1 end 5000", "app consume 1 5", "app release 1", "app reset 1 8",
// "app ping", "app shutdown", "app writable", "tick", "+3s" (time passes). What
// comes of it is printed below each line: events, and the frames that are sent.
//
// Everything runs twice, with the bytes of the peer in one piece and one by one.
func TestConn_Transcripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			testkit.Transcript(t, file, func(command, input string) string {
				whole := newConversation(t, command, false).run(input)
				if single := newConversation(t, command, true).run(input); single != whole {
					t.Fatalf("one byte at a time:\n%s\nin one piece:\n%s", single, whole)
				}
				return whole
			})
		})
	}
}

type conversation struct {
	*side
	client bool
	single bool
	out    strings.Builder
	// writer is the peer's, reader reads what our side sends.
	writer *http2.HeaderWriter
	reader *http2.HeaderReader
}

func newConversation(t *testing.T, command string, single bool) *conversation {
	t.Helper()
	c := &conversation{client: command == "client", single: single, writer: http2.NewHeaderWriter(), reader: http2.NewHeaderReader(1 << 20)}
	if !c.client && command != "server" {
		t.Fatalf("unknown command %q", command)
	}
	c.side = newSide(t, http2.Config{Client: c.client, Streams: 3}, func(e http2.Event) {
		fmt.Fprintf(&c.out, "  %s\n", describeEvent(e))
	})
	if !c.client {
		c.arrive([]byte(http2.Preface))
	}
	c.arrive(frame(http2.FrameSettings, 0, 0))
	c.arrive(frame(http2.FrameSettings, http2.FlagAck, 0))
	c.take()
	c.out.Reset()
	return c
}

func (c *conversation) run(input string) string {
	c.t.Helper()
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		fmt.Fprintf(&c.out, "%s\n", line)
		words := strings.Fields(line)
		switch {
		case words[0] == "app":
			c.app(words[1], words[2:])
		case words[0] == "tick":
			next, err := c.conn.Tick(c.now)
			if err != nil {
				c.err = err
			} else if next != 0 {
				fmt.Fprintf(&c.out, "  next in %d ms\n", (next-c.now)/millisecond)
			}
		case line[0] == '+':
			seconds, err := strconv.Atoi(strings.Trim(line, "+s"))
			if err != nil {
				c.t.Fatal(err)
			}
			c.now += http2.Nanoseconds(seconds) * second
		default:
			c.peer(c.frame(words))
		}
		if b := c.take(); len(b) > 0 {
			for _, sent := range frames(c.t, b, c.reader) {
				fmt.Fprintf(&c.out, "  %s\n", sent)
			}
		}
		if c.err != nil {
			fmt.Fprintf(&c.out, "  %v\n", c.err)
			return c.out.String()
		}
	}
	if c.conn.Unfinished() {
		c.out.WriteString("unfinished\n")
	}
	if c.conn.Done() {
		c.out.WriteString("done\n")
	}
	return c.out.String()
}

func (c *conversation) peer(b []byte) {
	if !c.single {
		c.arrive(b)
		return
	}
	for i := range b {
		c.arrive(b[i : i+1])
	}
}

// fields returns the flags and fields that words name.
func fields(words []string) (list []http2.Field, end bool) {
	for _, word := range words {
		name, value, ok := strings.Cut(word[1:], "=")
		switch {
		case word == "end":
			end = true
		case ok:
			list = append(list, http2.Field{Name: word[:1] + name, Value: value})
		}
	}
	return list, end
}

func number(t testing.TB, words []string, i int) uint32 {
	t.Helper()
	if i >= len(words) {
		return 0
	}
	n, err := strconv.ParseUint(words[i], 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// frame returns the bytes of the frame that a line describes.
func (c *conversation) frame(words []string) []byte {
	c.t.Helper()
	u32 := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	list, end := fields(words[1:])
	flags := http2.Flags(0)
	if end {
		flags = http2.FlagEndStream
	}
	switch words[0] {
	case "HEADERS":
		return frame(http2.FrameHeaders, flags|http2.FlagEndHeaders, number(c.t, words, 1), c.writer.Write(list)...)
	case "DATA":
		text, err := strconv.Unquote(words[len(words)-1])
		if err != nil {
			text = strings.Repeat("x", int(number(c.t, words, len(words)-1)))
		}
		return frame(http2.FrameData, flags, number(c.t, words, 1), []byte(text)...)
	case "RST_STREAM":
		return frame(http2.FrameRSTStream, 0, number(c.t, words, 1), u32(number(c.t, words, 2))...)
	case "WINDOW_UPDATE":
		return frame(http2.FrameWindowUpdate, 0, number(c.t, words, 1), u32(number(c.t, words, 2))...)
	case "PRIORITY":
		return frame(http2.FramePriority, 0, number(c.t, words, 1), append(u32(number(c.t, words, 2)), 0)...)
	case "GOAWAY":
		return frame(http2.FrameGoAway, 0, 0, append(u32(number(c.t, words, 1)), u32(number(c.t, words, 2))...)...)
	case "PING":
		if words[len(words)-1] == "ack" {
			flags = http2.FlagAck
		}
		return frame(http2.FramePing, flags, 0, append(u32(0), u32(number(c.t, words, 1))...)...)
	case "SETTINGS":
		if words[len(words)-1] == "ack" {
			return frame(http2.FrameSettings, http2.FlagAck, 0)
		}
		var b []byte
		for _, field := range list {
			b = binary.BigEndian.AppendUint16(b, uint16(number(c.t, []string{field.Name}, 0)))
			b = append(b, u32(number(c.t, []string{field.Value}, 0))...)
		}
		return frame(http2.FrameSettings, 0, 0, b...)
	case "raw":
		b, err := testkit.Hex(strings.Join(words[1:], " "))
		if err != nil {
			c.t.Fatal(err)
		}
		return b
	}
	c.t.Fatalf("unknown line %q", words)
	return nil
}

// app is what the caller does.
func (c *conversation) app(what string, words []string) {
	c.t.Helper()
	list, end := fields(words)
	id := uint32(0)
	if what != "open" {
		id = number(c.t, words, 0)
	}
	var err error
	switch what {
	case "open":
		id, err = c.conn.Open(list, end, c.now)
		if err == nil {
			fmt.Fprintf(&c.out, "  stream %d\n", id)
		}
	case "headers":
		err = c.conn.Headers(id, list, end)
	case "data":
		var n int
		p := make([]byte, number(c.t, words, len(words)-1))
		if n, err = c.conn.Data(id, p, end); n < len(p) && err == nil {
			fmt.Fprintf(&c.out, "  took %d of %d\n", n, len(p))
		}
	case "writable":
		if id, _, ok := c.conn.Writable(); ok {
			fmt.Fprintf(&c.out, "  stream %d\n", id)
		} else {
			c.out.WriteString("  none\n")
		}
	case "consume":
		c.conn.Consume(id, int(number(c.t, words, 1)), c.now)
	case "release":
		c.conn.Release(id)
	case "reset":
		c.conn.Reset(id, http2.ErrorCode(number(c.t, words, 1)))
	case "ping":
		c.conn.Ping(c.now)
	case "shutdown":
		c.conn.Shutdown(c.now)
	default:
		c.t.Fatalf("unknown line %q", what)
	}
	if err != nil {
		fmt.Fprintf(&c.out, "  error: %v\n", err)
	}
}
