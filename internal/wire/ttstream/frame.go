package ttstream

import (
	"math"
	"strconv"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// FrameType is what a frame is for: the value of the int key 27.
type FrameType uint8

// The types of frames.
const (
	FrameMeta FrameType = 1 + iota
	FrameHeader
	FrameData
	FrameTrailer
	FrameReset
)

// String returns the name that Kitex gives the type.
func (t FrameType) String() string {
	if t < FrameMeta || t > FrameReset {
		return strconv.Itoa(int(t))
	}
	return [...]string{"META", "HEADER", "DATA", "TRAILER", "RST"}[t-1]
}

// digits are the types as values of the key.
const digits = "012345"

// Frame is one frame. What it has aliases the bytes it was found in.
type Frame struct {
	Type   FrameType
	Stream int32
	Method []byte
	Info   wire.Info
	// Payload is nil if its Length is more than was asked for.
	Payload []byte
	Length  int
}

// Next returns the first frame in b and how many bytes it used, or how many b must hold
// for the next step. A payload above most bytes is left out, and used counts it although
// it may not have arrived. An error ends the connection.
func Next(b []byte, most int) (frame Frame, used, need int, err error) {
	found, used, need, err := ttheader.NextFrame(b, most)
	return frameOf(found, used, need, err)
}

// frameOf makes a Frame of one of TTHeader.
func frameOf(found ttheader.Frame, size, missing int, wrong error) (frame Frame, used, need int, err error) {
	if wrong != nil {
		return frame, 0, 0, connectionError(CodeBadFrame, "%v", wrong)
	}
	if missing > 0 {
		return frame, 0, missing, nil
	}
	frame = Frame{Stream: found.Sequence, Info: found.Info, Payload: found.Payload, Length: found.Length}
	// One walk: every frame comes through here.
	var kind []byte
	for key, value := range found.Info.Ints() {
		switch key {
		case wire.KeyStreamFrameType:
			kind = value
		case wire.KeyToMethod:
			frame.Method = value
		}
	}
	if len(kind) != 1 || kind[0] < '1' || kind[0] > '5' {
		return Frame{}, 0, 0, connectionError(CodeBadFrame, "frame of unknown type %.20q", kind)
	}
	frame.Type = FrameType(kind[0] - '0')
	return frame, size, 0, nil
}

// Failure is what a TRAILER or RST says of why the stream ended.
type Failure struct {
	Code    Code
	Message string
}

// parseFailure reads the message behind a TRAILER or RST.
func parseFailure(payload []byte) (Failure, error) {
	header, size, need, err := thriftwire.ParseHeader(payload)
	switch {
	case err != nil:
		return Failure{}, err
	case need > 0:
		return Failure{}, connectionError(CodeBadFrame, "exception of %d bytes ends inside its header", len(payload))
	case header.Type != thriftwire.Exception:
		return Failure{}, connectionError(CodeBadFrame, "%v message where an exception is expected", header.Type)
	}
	exception, err := thriftwire.ParseApplicationException(payload[size:])
	return Failure{Code: exception.Type, Message: exception.Message}, err
}

// Business is a business status: an error that is part of the protocol between the
// users of both sides.
type Business struct {
	Status         int32
	Message, Extra string
}

// parseBusiness reads the business status of a TRAILER; ok says that there is one.
func parseBusiness(info wire.Info) (business Business, ok bool, err error) {
	status, ok := info.String(wire.BusinessStatus)
	if !ok {
		return business, false, nil
	}
	n, err := strconv.ParseInt(string(status), 10, 32)
	if err != nil {
		return business, false, connectionError(CodeBadBusiness, "business status %.20q is no number", status)
	}
	if n == 0 {
		return business, false, nil
	}
	message, _ := info.String(wire.BusinessMessage)
	extra, _ := info.String(wire.BusinessExtra)
	return Business{Status: int32(n), Message: string(message), Extra: string(extra)}, true, nil
}

// number reads a decimal that is not negative; it stops counting at the largest int32.
func number(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = min(10*n+int64(digit-'0'), math.MaxInt32)
	}
	return n, true
}

// outgoing is a frame to be written.
type outgoing struct {
	kind    FrameType
	stream  int32
	method  string
	pairs   []ttheader.Pair
	timeout string
	failure *Failure
	// length is that of the message that goes with it.
	length int
	// fromService and fromMethod say who calls.
	fromService, fromMethod string
}

// frameWriter writes frames; it keeps what writing needs.
type frameWriter struct {
	ints [5]ttheader.IntPair
}

// write appends a frame, whole or not at all. The message is not in the frame, or its pieces
// would be allocated.
func (w *frameWriter) write(out *linkbuf.Buffer, f *outgoing, message ...[]byte) error {
	ints := append(w.ints[:0],
		ttheader.IntPair{Key: wire.KeyStreamFrameType, Value: digits[f.kind : f.kind+1]},
		ttheader.IntPair{Key: wire.KeyToMethod, Value: f.method})
	for _, more := range [...]ttheader.IntPair{
		{Key: wire.KeyTimeout, Value: f.timeout}, {Key: wire.KeyFromService, Value: f.fromService}, {Key: wire.KeyFromMethod, Value: f.fromMethod},
	} {
		if more.Value != "" {
			ints = append(ints, more)
		}
	}
	head := ttheader.Head{
		Flags: wire.FlagStreaming, Sequence: f.stream, Protocol: ttheader.ProtocolStruct,
		Strings: f.pairs, Ints: ints,
	}
	size, err := head.Size()
	if err != nil {
		return err
	}
	payload := f.length
	exception := thriftwire.ApplicationException{}
	if f.failure != nil {
		exception = thriftwire.ApplicationException{Type: f.failure.Code, Message: thriftwire.CleanMessage(f.failure.Message)}
		payload = thriftwire.AppendedHeaderSize(f.method) + exception.Size()
	}
	if int64(size)+int64(payload) > limits.FrameLengthMax {
		return ErrTooLarge
	}
	head.Put(out.Reserve(size), payload)
	if f.failure != nil {
		at := thriftwire.AppendedHeaderSize(f.method)
		thriftwire.PutHeader(out.Reserve(at), thriftwire.Exception, f.method, f.stream)
		exception.Put(out.Reserve(exception.Size()))
		return nil
	}
	for _, piece := range message {
		out.Append(piece)
	}
	return nil
}

// executedNo is the value of wire.Executed for what was not begun.
const executedNo = "no"
