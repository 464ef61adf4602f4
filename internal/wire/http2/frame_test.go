package http2_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	oracle "golang.org/x/net/http2"

	"github.com/fulmar-rpc/fulmar/internal/wire/http2"
)

// frame returns a frame's bytes.
func frame(frameType http2.FrameType, flags http2.Flags, stream uint32, payload ...byte) []byte {
	b := make([]byte, http2.FrameHeaderSize, http2.FrameHeaderSize+len(payload))
	http2.PutFrameHeader(b, len(payload), frameType, flags, stream)
	return append(b, payload...)
}

func TestNext_RulesOfFrames(t *testing.T) {
	const padded = http2.FlagPadded
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"data", frame(http2.FrameData, 1, 1, 'a', 'b'), `DATA 0x1 1 "ab"`},
		{"padded data", frame(http2.FrameData, padded, 1, 2, 'a', 0, 0), `DATA 0x8 1 "a"`},
		{"only padding", frame(http2.FrameData, padded, 1, 2, 0, 0), `DATA 0x8 1 ""`},
		{"too much padding", frame(http2.FrameData, padded, 1, 3, 0, 0), "connection PROTOCOL_ERROR"},
		{"no length of padding", frame(http2.FrameData, padded, 1), "connection FRAME_SIZE_ERROR"},
		{"data without stream", frame(http2.FrameData, 0, 0, 'a'), "connection PROTOCOL_ERROR"},
		{"reserved bit of the stream", frame(http2.FrameData, 0, 1<<31|1, 'a'), `DATA 0x0 1 "a"`},
		{"headers", frame(http2.FrameHeaders, 4, 3, 0x82), `HEADERS 0x4 3 "\x82"`},
		{"headers with priority", frame(http2.FrameHeaders, 0x24, 3, 0, 0, 0, 1, 9, 0x82), `HEADERS 0x24 3 "\x82" value 9`},
		{"headers padded, with priority", frame(http2.FrameHeaders, 0x2c, 3, 1, 0, 0, 0, 1, 9, 0x82, 0), `HEADERS 0x2c 3 "\x82" value 9`},
		{"headers that depend on themselves", frame(http2.FrameHeaders, 0x24, 3, 0, 0, 0, 3, 9, 0x82), "stream PROTOCOL_ERROR"},
		{"headers shorter than a priority", frame(http2.FrameHeaders, 0x24, 3, 0, 0, 0, 1), "connection FRAME_SIZE_ERROR"},
		{"headers without stream", frame(http2.FrameHeaders, 4, 0, 0x82), "connection PROTOCOL_ERROR"},
		{"priority", frame(http2.FramePriority, 0, 3, 0, 0, 0, 1, 9), `PRIORITY 0x0 3 "" value 9`},
		{"short priority", frame(http2.FramePriority, 0, 3, 0, 0, 0, 1), "stream FRAME_SIZE_ERROR"},
		{"priority without stream", frame(http2.FramePriority, 0, 0, 0, 0, 0, 1, 9), "connection PROTOCOL_ERROR"},
		{"reset", frame(http2.FrameRSTStream, 0, 3, 0, 0, 0, 8), `RST_STREAM 0x0 3 "" CANCEL`},
		{"long reset", frame(http2.FrameRSTStream, 0, 3, 0, 0, 0, 8, 0), "connection FRAME_SIZE_ERROR"},
		{"reset without stream", frame(http2.FrameRSTStream, 0, 0, 0, 0, 0, 8), "connection PROTOCOL_ERROR"},
		{"settings", frame(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 0, 1), `SETTINGS 0x0 0 4=1`},
		{"settings that end early", frame(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 0), "connection FRAME_SIZE_ERROR"},
		{"settings on a stream", frame(http2.FrameSettings, 0, 1, 0, 4, 0, 0, 0, 1), "connection PROTOCOL_ERROR"},
		{"acknowledgement with settings", frame(http2.FrameSettings, 1, 0, 0, 4, 0, 0, 0, 1), "connection FRAME_SIZE_ERROR"},
		{"promise", frame(http2.FramePushPromise, 4, 1, 0, 0, 0, 2, 0x82), `PUSH_PROMISE 0x4 1 "\x82" value 2`},
		{"short promise", frame(http2.FramePushPromise, 4, 1, 0, 0, 0), "connection FRAME_SIZE_ERROR"},
		{"ping", frame(http2.FramePing, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8), `PING 0x0 0 "\x01\x02\x03\x04\x05\x06\a\b"`},
		{"short ping", frame(http2.FramePing, 0, 0, 1, 2, 3, 4, 5, 6, 7), "connection FRAME_SIZE_ERROR"},
		{"ping on a stream", frame(http2.FramePing, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8), "connection PROTOCOL_ERROR"},
		{"goaway", frame(http2.FrameGoAway, 0, 0, 0, 0, 0, 7, 0, 0, 0, 11, 'x'), `GOAWAY 0x0 0 "x" value 7 ENHANCE_YOUR_CALM`},
		{"short goaway", frame(http2.FrameGoAway, 0, 0, 0, 0, 0, 7, 0, 0, 0), "connection FRAME_SIZE_ERROR"},
		{"goaway on a stream", frame(http2.FrameGoAway, 0, 1, 0, 0, 0, 7, 0, 0, 0, 11), "connection PROTOCOL_ERROR"},
		{"window update", frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 9), `WINDOW_UPDATE 0x0 0 "" value 9`},
		{"window update by 0", frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 0), "connection PROTOCOL_ERROR"},
		{"window update of a stream by 0", frame(http2.FrameWindowUpdate, 0, 5, 0x80, 0, 0, 0), "stream PROTOCOL_ERROR"},
		{"short window update", frame(http2.FrameWindowUpdate, 0, 0, 0, 0, 9), "connection FRAME_SIZE_ERROR"},
		{"continuation", frame(http2.FrameContinuation, 4, 1, 0x82), `CONTINUATION 0x4 1 "\x82"`},
		{"continuation without stream", frame(http2.FrameContinuation, 4, 0, 0x82), "connection PROTOCOL_ERROR"},
		{"unknown type", frame(0xfe, 0xff, 7, 1), `frame type 254 0xff 7 "\x01"`},
		{"longest", frame(http2.FrameData, 0, 1, make([]byte, 100)...), `DATA 0x0 1 "` + strings.Repeat(`\x00`, 100) + `"`},
		{"too long", frame(http2.FrameData, 0, 1, make([]byte, 101)...), "connection FRAME_SIZE_ERROR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describeFrame(http2.Next(c.b, 100)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for cut := range c.b {
				_, used, need, err := http2.Next(c.b[:cut], 100)
				if err == nil && (used != 0 || need <= cut || need > len(c.b)) {
					t.Errorf("%d bytes of %d: used %d, need %d", cut, len(c.b), used, need)
				}
			}
		})
	}
}

// describeFrame returns what Next returned as text.
func describeFrame(f http2.Frame, used, need int, err error) string {
	var problem *http2.Error
	switch {
	case errors.As(err, &problem):
		return "connection " + problem.Code.String()
	case err != nil:
		return err.Error()
	case used == 0:
		return fmt.Sprintf("need %d", need)
	case f.Invalid != nil:
		return "stream " + f.Invalid.Code.String()
	}
	text := fmt.Sprintf("%v %#x %d", f.Type, uint8(f.Flags), f.Stream)
	if f.Type == http2.FrameSettings {
		for i := range f.Settings() {
			id, value := f.Setting(i)
			text += fmt.Sprintf(" %d=%d", id, value)
		}
		return text
	}
	text += fmt.Sprintf(" %q", f.Payload)
	if f.Value != 0 {
		text += fmt.Sprintf(" value %d", f.Value)
	}
	if f.Code != 0 {
		text += " " + f.Code.String()
	}
	return text
}

// FuzzNext compares with the Framer of golang.org/x/net: both take and refuse
// the same frames, with the same contents, but for what sameRefusal lists.
func FuzzNext(f *testing.F) {
	f.Add(frame(http2.FrameData, http2.FlagPadded, 1, 2, 'a', 0, 0))
	f.Add(frame(http2.FrameHeaders, 0x2c, 3, 1, 0, 0, 0, 1, 9, 0x82, 0))
	f.Add(frame(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 0, 1))
	f.Add(frame(http2.FrameGoAway, 0, 0, 0, 0, 0, 7, 0, 0, 0, 11, 'x'))
	f.Add(frame(http2.FramePushPromise, 4, 1, 0, 0, 0, 2, 0x82))
	f.Add(frame(http2.FrameWindowUpdate, 0, 5, 0x80, 0, 0, 0))
	const longest = 1000
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, used, need, err := http2.Next(b, longest)
		if err == nil && used == 0 {
			if need <= len(b) || need > http2.FrameHeaderSize+longest {
				t.Fatalf("need %d of %d bytes", need, len(b))
			}
			return
		}
		if used > len(b) || used > 0 && (used != http2.FrameHeaderSize+ours.Length || len(ours.Payload) > ours.Length) {
			t.Fatalf("used %d of %d bytes: %+v", used, len(b), ours)
		}
		if ours.Type == 0x10 {
			return // PRIORITY_UPDATE of RFC 9218, which they know.
		}
		framer := oracle.NewFramer(io.Discard, bytes.NewReader(b))
		framer.AllowIllegalReads = true
		framer.SetMaxReadFrameSize(longest)
		theirs, theirError := framer.ReadFrame()
		if theirError != nil || err != nil || ours.Invalid != nil {
			if !sameRefusal(ours, err, theirError, b) {
				t.Fatalf("%+v: we refuse it with %v or %v, they with %v", ours, err, ours.Invalid, theirError)
			}
			return
		}
		head := theirs.Header()
		if head.Type != oracle.FrameType(ours.Type) || head.Flags != oracle.Flags(ours.Flags) || head.StreamID != ours.Stream {
			t.Fatalf("%+v, theirs %v", ours, head)
		}
		if payload, value, code := contents(theirs); !bytes.Equal(payload, ours.Payload) || value != ours.Value || code != uint32(ours.Code) {
			t.Fatalf("%+v, theirs %v: %x, %d, %d", ours, head, payload, value, code)
		}
	})
}

// sameRefusal reports whether both refuse a frame, or why only one does.
func sameRefusal(ours http2.Frame, err, theirs error, b []byte) bool {
	var ourProblem *http2.Error
	if !errors.As(err, &ourProblem) {
		ourProblem = ours.Invalid
	}
	switch theirs := theirs.(type) {
	case nil:
		// They let the connection decide about streams that depend on themselves.
		return ours.Invalid != nil && ours.Invalid.Code == http2.ProtocolError && ours.Type != http2.FrameWindowUpdate
	case oracle.StreamError:
		// RFC 9113, 6.2: too much padding ends the connection. They end the stream.
		return ourProblem != nil && (uint32(ourProblem.Code) == uint32(theirs.Code) || ours.Flags.Has(http2.FlagPriority))
	case oracle.ConnectionError:
		if ourProblem == nil {
			// Values of settings are checked by our Conn.
			return ours.Type == http2.FrameSettings && oracle.ErrCode(theirs) == oracle.ErrCodeFlowControl
		}
		return ourProblem.Stream == 0 || ours.Type == http2.FramePriority
	default:
		// They wait for the rest of a frame that is wrong from its first bytes on.
		return ourProblem != nil && (errors.Is(theirs, io.ErrUnexpectedEOF) || errors.Is(theirs, io.EOF) || errors.Is(theirs, oracle.ErrFrameTooLarge)) || len(b) < http2.FrameHeaderSize
	}
}

// contents returns what a frame of the oracle has in it, as a Frame has it.
func contents(f oracle.Frame) (payload []byte, value, code uint32) {
	switch f := f.(type) {
	case *oracle.DataFrame:
		return f.Data(), 0, 0
	case *oracle.HeadersFrame:
		return f.HeaderBlockFragment(), uint32(f.Priority.Weight), 0
	case *oracle.PriorityFrame:
		return nil, uint32(f.Weight), 0
	case *oracle.RSTStreamFrame:
		return nil, 0, uint32(f.ErrCode)
	case *oracle.SettingsFrame:
		for i := range f.NumSettings() {
			s := f.Setting(i)
			payload = binary.BigEndian.AppendUint16(payload, uint16(s.ID))
			payload = binary.BigEndian.AppendUint32(payload, s.Val)
		}
		return payload, 0, 0
	case *oracle.PushPromiseFrame:
		return f.HeaderBlockFragment(), f.PromiseID, 0
	case *oracle.PingFrame:
		return f.Data[:], 0, 0
	case *oracle.GoAwayFrame:
		return f.DebugData(), f.LastStreamID, uint32(f.ErrCode)
	case *oracle.WindowUpdateFrame:
		return nil, f.Increment, 0
	case *oracle.ContinuationFrame:
		return f.HeaderBlockFragment(), 0, 0
	case *oracle.UnknownFrame:
		return f.Payload(), 0, 0
	}
	return nil, 0, 0
}
