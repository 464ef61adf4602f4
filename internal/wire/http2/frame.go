package http2

import (
	"encoding/binary"
	"strconv"
)

// Preface is what a client sends before its first frame (RFC 9113, 3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// FrameHeaderSize is the size of what stands in front of each frame's payload.
const FrameHeaderSize = 9

// FrameBytesMin is how long a payload everybody takes, and FrameBytesMax how
// long one can be at all (RFC 9113, 4.2).
const (
	FrameBytesMin = 1 << 14
	FrameBytesMax = 1<<24 - 1
)

// streamMask removes the reserved bit of stream ids and window sizes.
const streamMask = 1<<31 - 1

// FrameType is the type of a frame (RFC 9113, 6).
type FrameType uint8

// The frame types.
const (
	FrameData         FrameType = 0x0
	FrameHeaders      FrameType = 0x1
	FramePriority     FrameType = 0x2
	FrameRSTStream    FrameType = 0x3
	FrameSettings     FrameType = 0x4
	FramePushPromise  FrameType = 0x5
	FramePing         FrameType = 0x6
	FrameGoAway       FrameType = 0x7
	FrameWindowUpdate FrameType = 0x8
	FrameContinuation FrameType = 0x9
)

// String returns the name that RFC 9113 gives the type.
func (t FrameType) String() string {
	names := [...]string{
		"DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE", "CONTINUATION",
	}
	if int(t) < len(names) {
		return names[t]
	}
	return "frame type " + strconv.Itoa(int(t))
}

// Flags are the flags of a frame. What a bit means depends on the type.
type Flags uint8

// The flags.
const (
	FlagEndStream  Flags = 0x1
	FlagAck        Flags = 0x1
	FlagEndHeaders Flags = 0x4
	FlagPadded     Flags = 0x8
	FlagPriority   Flags = 0x20
)

// Has reports whether all of flags are set.
func (f Flags) Has(flags Flags) bool { return f&flags == flags }

// Frame is one frame. Payload aliases the bytes that it was found in.
type Frame struct {
	Type   FrameType
	Flags  Flags
	Stream uint32
	// Length is that of the payload as it was sent, with padding and priority: what
	// flow control counts of DATA.
	Length int
	// Payload is the data, the fragment of a header block, the settings, the 8 bytes
	// of a PING, the debug data of a GOAWAY, or all of a frame of unknown type.
	Payload []byte
	// Code is of RST_STREAM and GOAWAY.
	Code ErrorCode
	// Value is the increment of a WINDOW_UPDATE, the last stream of a GOAWAY, the
	// promised stream of a PUSH_PROMISE, the weight less one of a PRIORITY.
	Value uint32
	// Invalid ends the frame's stream, although the connection goes on.
	Invalid *Error
}

// Ends reports whether the frame is the last of its side of the stream.
func (f *Frame) Ends() bool {
	return (f.Type == FrameData || f.Type == FrameHeaders) && f.Flags.Has(FlagEndStream)
}

// Settings returns how many settings a SETTINGS frame has.
func (f *Frame) Settings() int { return len(f.Payload) / settingSize }

// Setting returns the i-th setting of a SETTINGS frame.
func (f *Frame) Setting(i int) (id SettingID, value uint32) {
	b := f.Payload[i*settingSize:]
	return SettingID(binary.BigEndian.Uint16(b)), binary.BigEndian.Uint32(b[2:])
}

const settingSize = 6

// SettingID names a setting (RFC 9113, 6.5.2).
type SettingID uint16

// The settings.
const (
	SettingHeaderTableSize      SettingID = 0x1
	SettingEnablePush           SettingID = 0x2
	SettingMaxConcurrentStreams SettingID = 0x3
	SettingInitialWindowSize    SettingID = 0x4
	SettingMaxFrameSize         SettingID = 0x5
	SettingMaxHeaderListSize    SettingID = 0x6
)

// Next returns the first frame in b and how many bytes it used, or how many
// bytes b must hold for the next step. An error is for the connection: what
// follows cannot be understood, or must not be looked at. longest is the limit
// for a payload that this side has announced.
//
// What a frame means where it stands is not checked here, with one exception:
// which types have a stream and which do not.
func Next(b []byte, longest int) (frame Frame, used, need int, err error) {
	if len(b) < FrameHeaderSize {
		return frame, 0, FrameHeaderSize, nil
	}
	head := binary.BigEndian.Uint32(b)
	length := int(head >> 8)
	frame = Frame{Type: FrameType(head), Flags: Flags(b[4]), Stream: binary.BigEndian.Uint32(b[5:]) & streamMask, Length: length}
	if length > longest {
		// RFC 9113, 4.2: for most types this could end the stream only. Whoever does
		// not keep to the limit that it was told is not waited for.
		return frame, 0, 0, connectionError(FrameSizeError, "%v of %d bytes (limit %d)", frame.Type, length, longest)
	}
	if problem := frame.checkHead(); problem != nil {
		return frame, 0, 0, problem
	}
	used = FrameHeaderSize + length
	if len(b) < used {
		return frame, 0, used, nil
	}
	frame.Payload = b[FrameHeaderSize:used:used]
	if problem := frame.parse(); problem != nil {
		return frame, 0, 0, problem
	}
	return frame, used, 0, nil
}

// checkHead checks what the header of a frame says alone: whether it has a
// stream, and lengths that are fixed. So no payload is waited for in vain.
func (f *Frame) checkHead() *Error {
	switch f.Type {
	case FrameData, FrameHeaders, FramePriority, FrameRSTStream, FramePushPromise, FrameContinuation:
		if f.Stream == 0 {
			return connectionError(ProtocolError, "%v without a stream", f.Type)
		}
	case FrameSettings, FramePing, FrameGoAway:
		if f.Stream != 0 {
			return connectionError(ProtocolError, "%v on stream %d", f.Type, f.Stream)
		}
	}
	bad := false
	switch f.Type {
	case FrameRSTStream, FrameWindowUpdate:
		bad = f.Length != 4
	case FramePing:
		bad = f.Length != 8
	case FrameGoAway:
		bad = f.Length < 8
	case FrameSettings:
		bad = f.Length%settingSize != 0 || f.Flags.Has(FlagAck) && f.Length != 0
	}
	if bad {
		return connectionError(FrameSizeError, "%v of %d bytes", f.Type, f.Length)
	}
	return nil
}

// parse takes the payload apart.
func (f *Frame) parse() *Error {
	switch f.Type {
	case FrameData:
		return f.cutPadding()
	case FrameHeaders:
		if problem := f.cutPadding(); problem != nil {
			return problem
		}
		if f.Flags.Has(FlagPriority) {
			return f.cutPriority()
		}
	case FramePriority:
		if f.Length != prioritySize {
			// RFC 9113, 6.3.
			f.Invalid = streamError(f.Stream, FrameSizeError, "PRIORITY of %d bytes", f.Length)
			return nil
		}
		return f.cutPriority()
	case FrameRSTStream:
		f.Code = ErrorCode(binary.BigEndian.Uint32(f.Payload))
		f.Payload = nil
	case FramePushPromise:
		if problem := f.cutPadding(); problem != nil {
			return problem
		}
		if len(f.Payload) < 4 {
			return connectionError(FrameSizeError, "PUSH_PROMISE of %d bytes", f.Length)
		}
		f.Value = binary.BigEndian.Uint32(f.Payload) & streamMask
		f.Payload = f.Payload[4:]
	case FrameGoAway:
		f.Value = binary.BigEndian.Uint32(f.Payload) & streamMask
		f.Code = ErrorCode(binary.BigEndian.Uint32(f.Payload[4:]))
		f.Payload = f.Payload[8:]
	case FrameWindowUpdate:
		f.Value = binary.BigEndian.Uint32(f.Payload) & streamMask
		f.Payload = nil
		if f.Value == 0 && f.Stream == 0 {
			// RFC 9113, 6.9.
			return connectionError(ProtocolError, "WINDOW_UPDATE by 0")
		}
		if f.Value == 0 {
			f.Invalid = streamError(f.Stream, ProtocolError, "WINDOW_UPDATE by 0")
		}
	}
	return nil
}

// cutPadding removes padding and its length (RFC 9113, 6.1).
func (f *Frame) cutPadding() *Error {
	if !f.Flags.Has(FlagPadded) {
		return nil
	}
	if len(f.Payload) == 0 {
		return connectionError(FrameSizeError, "padded %v of 0 bytes", f.Type)
	}
	padding := int(f.Payload[0])
	f.Payload = f.Payload[1:]
	if padding > len(f.Payload) {
		return connectionError(ProtocolError, "%v with %d bytes of padding in %d", f.Type, padding, f.Length)
	}
	f.Payload = f.Payload[:len(f.Payload)-padding]
	return nil
}

const prioritySize = 5

// cutPriority removes the priority, which RFC 9113, 5.3.2 lets everybody ignore.
func (f *Frame) cutPriority() *Error {
	if len(f.Payload) < prioritySize {
		return connectionError(FrameSizeError, "%v of %d bytes with a priority", f.Type, f.Length)
	}
	depends := binary.BigEndian.Uint32(f.Payload) & streamMask
	f.Value = uint32(f.Payload[4])
	f.Payload = f.Payload[prioritySize:]
	if depends == f.Stream {
		// RFC 7540, 5.3.1; the newer one has forgotten it. Who sends this is broken.
		f.Invalid = streamError(f.Stream, ProtocolError, "stream depends on itself")
	}
	return nil
}
