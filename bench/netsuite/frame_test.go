package netsuite

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
)

// request is a frame with that payload.
func request(flags byte, payload []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(headerBytes-LengthBytes+len(payload)))
	frame = binary.BigEndian.AppendUint64(frame, 0x0102030405060708)
	return append(append(frame, flags), payload...)
}

func TestFrameBytes_HasLimits(t *testing.T) {
	for length, want := range map[uint32]int{
		0: 0, headerBytes - LengthBytes - 1: 0,
		headerBytes - LengthBytes:                  headerBytes,
		headerBytes - LengthBytes + PayloadMax:     headerBytes + PayloadMax,
		headerBytes - LengthBytes + PayloadMax + 1: 0,
		1<<32 - 1: 0,
	} {
		got, err := FrameBytes(binary.BigEndian.AppendUint32(nil, length))
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("length %d: %d bytes, %v; want %d", length, got, err, want)
		}
	}
	frame := request(0, make([]byte, 100))
	if got, err := FrameBytes(frame); got != len(frame) || err != nil {
		t.Errorf("a frame of %d bytes has %d: %v", len(frame), got, err)
	}
}

func TestHandle_ReturnsTheRequest(t *testing.T) {
	for _, flags := range []byte{0, flagBurn, flagSleep, flagBurn | flagSleep} {
		frame := request(flags, []byte("payload"))
		before := bytes.Clone(frame)
		reply := Handle(frame)
		if &reply[0] != &frame[0] || !bytes.Equal(reply, before) {
			t.Errorf("flags %d: %x is the reply to %x", flags, reply, before)
		}
		if Blocks(frame) != (flags&flagSleep != 0) {
			t.Errorf("flags %d: blocks is %v", flags, Blocks(frame))
		}
	}
}

func TestHandle_TellsHowMuchMemoryIsInUse(t *testing.T) {
	frame := request(flagMemory, make([]byte, 16))
	before := bytes.Clone(frame)
	held := bytes.Repeat([]byte{1}, 8<<20)
	reply := Handle(frame)
	runtime.KeepAlive(held)
	heap, all := binary.BigEndian.Uint64(reply[headerBytes:]), binary.BigEndian.Uint64(reply[headerBytes+8:])
	if heap < uint64(len(held)) || all <= heap {
		t.Errorf("a heap of %d bytes and %d in all, with %d held", heap, all, len(held))
	}
	if !bytes.Equal(frame, before) || !bytes.Equal(reply[:headerBytes], before[:headerBytes]) {
		t.Errorf("request %x became %x, its reply is %x", before, frame, reply)
	}
	if short := request(flagMemory, make([]byte, 15)); !slices.Equal(Handle(short), short) {
		t.Error("an answer was written into a payload without room for it")
	}
}
