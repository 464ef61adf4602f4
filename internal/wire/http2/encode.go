package http2

import (
	"encoding/binary"

	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// PutFrameHeader writes the header of a frame to b, which has FrameHeaderSize
// bytes.
func PutFrameHeader(b []byte, length int, frameType FrameType, flags Flags, stream uint32) {
	_ = b[FrameHeaderSize-1]
	binary.BigEndian.PutUint32(b, uint32(length)<<8|uint32(frameType))
	b[4] = byte(flags)
	binary.BigEndian.PutUint32(b[5:], stream)
}

// reserveFrame adds a frame to out and returns its payload, to be filled in.
func reserveFrame(out *linkbuf.Buffer, length int, frameType FrameType, flags Flags, stream uint32) []byte {
	b := out.Reserve(FrameHeaderSize + length)
	PutFrameHeader(b, length, frameType, flags, stream)
	return b[FrameHeaderSize:]
}

func appendRSTStream(out *linkbuf.Buffer, stream uint32, code ErrorCode) {
	binary.BigEndian.PutUint32(reserveFrame(out, 4, FrameRSTStream, 0, stream), uint32(code))
}

func appendWindowUpdate(out *linkbuf.Buffer, stream, increment uint32) {
	binary.BigEndian.PutUint32(reserveFrame(out, 4, FrameWindowUpdate, 0, stream), increment)
}

func appendPing(out *linkbuf.Buffer, flags Flags, data uint64) {
	binary.BigEndian.PutUint64(reserveFrame(out, 8, FramePing, flags, 0), data)
}

func appendSettingsAck(out *linkbuf.Buffer) {
	reserveFrame(out, 0, FrameSettings, FlagAck, 0)
}

func appendSettings(out *linkbuf.Buffer, settings []setting) {
	b := reserveFrame(out, len(settings)*settingSize, FrameSettings, 0, 0)
	for i, s := range settings {
		binary.BigEndian.PutUint16(b[i*settingSize:], uint16(s.id))
		binary.BigEndian.PutUint32(b[i*settingSize+2:], s.value)
	}
}

type setting struct {
	id    SettingID
	value uint32
}

func appendGoAway(out *linkbuf.Buffer, last uint32, code ErrorCode, debug string) {
	b := reserveFrame(out, 8+len(debug), FrameGoAway, 0, 0)
	binary.BigEndian.PutUint32(b, last)
	binary.BigEndian.PutUint32(b[4:], uint32(code))
	copy(b[8:], debug)
}

// appendHeaders adds a header block: HEADERS, and CONTINUATION for what does not
// fit the frames that the peer takes.
func appendHeaders(out *linkbuf.Buffer, stream uint32, block []byte, end bool, longest int) {
	frameType, flags := FrameHeaders, Flags(0)
	if end {
		flags = FlagEndStream
	}
	for first := true; first || len(block) > 0; first = false {
		n := min(len(block), longest)
		if n == len(block) {
			flags |= FlagEndHeaders
		}
		copy(reserveFrame(out, n, frameType, flags, stream), block[:n])
		block = block[n:]
		frameType, flags = FrameContinuation, 0
	}
}
