package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/thriftwire"
	"github.com/fulmar-rpc/fulmar/internal/wire"
	"github.com/fulmar-rpc/fulmar/internal/wire/grpc"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttheader"
)

// capabilityMux in the value of wire.Capabilities, a comma separated list, says
// that the sender matches replies by sequence id and answers in any order.
const capabilityMux = "mux"

// executedNo in ReplyHead.Executed is what every peer is told, executedYes what peers of ours are.
const (
	executedNo  = "no"
	executedYes = "yes"
)

// Pair is a key with a value that a TTHeader carries. Prefix and Key together
// are the key on the wire.
type Pair = ttheader.Pair

// RequestHead is what a request tells besides its method and arguments, where
// the protocol can carry it. Nothing of it can be relied on: it is what the
// peer says.
type RequestHead struct {
	// Service is the service in the IDL, ToService the name under which it is
	// found, FromService and FromMethod who calls.
	Service     string
	ToService   string
	FromService string
	FromMethod  string
	// Timeout is how long the caller waits, 0 if it does not say; At is from when on.
	Timeout time.Duration
	At      time.Time
	// Metadata are persistent and transient pairs, with their prefixes.
	Metadata []Pair
	// Encoding is what messages are compressed with, "" or "identity" for nothing.
	Encoding string
	// HTTP is what the headers of a request that has come say besides; nil if it has none.
	HTTP *HTTPHead
}

// HTTPHead is what requests of HTTP/2 have that is no metadata. Requests of one connection
// share it as long as they say the same, and it never changes.
type HTTPHead struct{ Authority, ContentType, UserAgent, AcceptEncoding string }

// ReplyHead is what a reply tells besides its result, where the protocol can
// carry it.
type ReplyHead struct {
	// Executed says whether the handler of a failed call ran: "no", "yes", or
	// nothing.
	Executed string
	// Code is the number of the error's code; 0 if the peer did not say.
	Code uint32
	// Business is set for a business error.
	Business *BusinessStatus
	// Details is a google.rpc.Status in Protobuf that goes with an error, in gRPC only.
	Details []byte
	// Metadata are the pairs that the handler added, Trailing those that go behind the
	// message in gRPC.
	Metadata, Trailing []Pair
	// LikelyBytes is about how long the body will be, 0 if nobody knows.
	LikelyBytes int
}

// BusinessStatus is a business error as it travels.
type BusinessStatus struct {
	Status  int32
	Message string
	Extra   map[string]string
}

// --- requests ---

// put writes the head into the header of a request. It fails for metadata that
// the peer would take for something else.
func (h *RequestHead) put(r *Request) error {
	for i := range h.Metadata {
		if pair := &h.Metadata[i]; pair.Prefix == wire.TransientPrefix && strings.HasPrefix(pair.Key, wire.UpstreamKeys) {
			return fmt.Errorf("metadata: transient key begins with %q, so peers would drop its pair as one that has made its hop (key %.100q)", wire.UpstreamKeys, pair.Key)
		}
	}
	header := &r.header
	header.Strings, header.Ints = r.maps.strings[:0], r.maps.ints[:0]
	header.Strings = append(header.Strings, Pair{Key: wire.Capabilities, Value: capabilityMux})
	if h.Service != "" {
		header.Strings = append(header.Strings, Pair{Key: wire.IDLServiceName, Value: h.Service})
	}
	header.Strings = appendSingle(header.Strings, h.Metadata)
	number := func(key uint16, value string) {
		if value != "" {
			header.Ints = append(header.Ints, ttheader.IntPair{Key: key, Value: value})
		}
	}
	transportType := "unframed"
	if r.protocol == wire.TTHeaderFramed {
		transportType = "framed"
	}
	number(wire.KeyTransportType, transportType)
	number(wire.KeyFromService, h.FromService)
	number(wire.KeyToService, h.ToService)
	number(wire.KeyToMethod, r.method)
	if h.Timeout > 0 {
		r.told, r.toldAt = milliseconds(h.Timeout), len(header.Ints)
		number(wire.KeyTimeout, strconv.FormatInt(r.told, 10))
	}
	number(wire.KeyFromMethod, h.FromMethod)
	messageType := thriftwire.Call
	if r.oneway {
		messageType = thriftwire.Oneway
	}
	number(wire.KeyMessageType, messageTypeText(messageType))
	return nil
}

// milliseconds rounds up, and to 1 at least: 0 would be no limit.
func milliseconds(d time.Duration) int64 {
	return int64((max(d, 1) + time.Millisecond - 1) / time.Millisecond)
}

func messageTypeText(t thriftwire.MessageType) string {
	return [...]string{thriftwire.Call: "1", thriftwire.Reply: "2", thriftwire.Exception: "3", thriftwire.Oneway: "4"}[t]
}

// callerNames remembers who called last on a connection: usually it is the same
// for all calls, and a text need not be made for each.
type callerNames struct{ service, method string }

// requestHead is what the header of a request says, its service still as bytes.
type requestHead struct {
	RequestHead
	service []byte
	// mux: the caller can multiplex.
	mux bool
}

// read returns what a request tells. Only its service refers to info.
func (n *callerNames) read(info wire.Info) (head requestHead) {
	if info.Len() == 0 {
		return head
	}
	var metadata pairSet
	for key, value := range info.Strings() {
		switch {
		case string(key) == wire.IDLServiceName:
			head.service = value
		case string(key) == wire.Capabilities:
			head.mux = hasCapability(value, capabilityMux)
		case hasPrefix(key, wire.PersistentPrefix):
			metadata.add(wire.PersistentPrefix, key, value)
		case hasPrefix(key, wire.UpstreamPrefix):
			// It has made its hop already: an old peer passes it on. Kitex drops it
			// too, before a handler sees it.
		case hasPrefix(key, wire.TransientPrefix):
			metadata.add(wire.TransientPrefix, key, value)
		}
	}
	for key, value := range info.Ints() {
		switch key {
		case wire.KeyFromService:
			head.FromService = remember(&n.service, value)
		case wire.KeyFromMethod:
			head.FromMethod = remember(&n.method, value)
		case wire.KeyTimeout:
			head.Timeout = readTimeout(value)
		}
	}
	head.Metadata = metadata.pairs
	return head
}

// remember returns value as a text, the last one if it is the same.
func remember(last *string, value []byte) string {
	if string(value) != *last {
		*last = string(value)
	}
	return *last
}

// readTimeout returns the milliseconds in text, within what a peer may ask for a stream;
// 0 if it is no such number.
func readTimeout(text []byte) time.Duration {
	// A number that is too large comes back as the largest.
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || n <= 0 {
		return 0
	}
	return time.Duration(min(n, int64(limits.PeerStreamTimeout/time.Millisecond))) * time.Millisecond
}

func hasCapability(list []byte, capability string) bool {
	for word := range strings.SplitSeq(string(list), ",") {
		if strings.TrimSpace(word) == capability {
			return true
		}
	}
	return false
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// pairSet collects pairs, of which the last one of a key counts.
type pairSet struct {
	pairs []Pair
	// index has the place of each key on the wire, once there are many pairs:
	// looking through 500 of them for each took 2 ms.
	index map[string]int
}

// manyPairs is where looking through all pairs begins to take longer than the
// index.
const manyPairs = 16

// add adds a pair whose key on the wire begins with prefix. Without a key or a
// value there is none.
func (s *pairSet) add(prefix string, key, value []byte) {
	if len(key) == len(prefix) || len(value) == 0 {
		return
	}
	if at := s.find(prefix, key); at >= 0 {
		s.pairs[at].Value = string(value)
		return
	}
	whole := string(key)
	if s.index != nil {
		s.index[whole] = len(s.pairs)
	}
	s.pairs = append(s.pairs, Pair{Prefix: prefix, Key: whole[len(prefix):], Value: string(value)})
	if len(s.pairs) == manyPairs {
		s.index = make(map[string]int, 2*manyPairs)
		for i := range s.pairs {
			s.index[s.pairs[i].Prefix+s.pairs[i].Key] = i
		}
	}
}

// find returns where the pair of a key is, -1 if there is none.
func (s *pairSet) find(prefix string, key []byte) int {
	if s.index != nil {
		if at, ok := s.index[string(key)]; ok {
			return at
		}
		return -1
	}
	for i := range s.pairs {
		if s.pairs[i].Prefix == prefix && s.pairs[i].Key == string(key[len(prefix):]) {
			return i
		}
	}
	return -1
}

// --- replies ---

// put writes the head into the header of a reply.
func (h *ReplyHead) put(r *Reply, messageType thriftwire.MessageType) (err error) {
	header := &r.header
	header.Strings, err = h.appendPairs(r.maps.strings[:0])
	header.Ints = append(r.maps.ints[:0], ttheader.IntPair{Key: wire.KeyMessageType, Value: messageTypeText(messageType)})
	return err
}

// appendPairs appends what a TTHeader says of an answer.
func (h *ReplyHead) appendPairs(pairs []Pair) ([]Pair, error) {
	text := func(key, value string) {
		if value != "" {
			pairs = append(pairs, Pair{Key: key, Value: value})
		}
	}
	text(wire.Executed, h.Executed)
	if h.Code != 0 {
		text(wire.Code, strconv.FormatUint(uint64(h.Code), 10))
	}
	if business := h.Business; business != nil {
		text(wire.BusinessStatus, strconv.FormatInt(int64(business.Status), 10))
		text(wire.BusinessMessage, thriftwire.CleanMessage(business.Message))
		if len(business.Extra) > 0 {
			extra, err := json.Marshal(business.Extra)
			if err != nil {
				return pairs, fmt.Errorf("business error: %w", err)
			}
			text(wire.BusinessExtra, string(extra))
		}
	}
	return appendSingle(appendSingle(pairs, h.Metadata), h.Trailing), nil
}

// appendSingle appends pairs of which a TTHeader has one for each key: texts of one key,
// which follow each other, get commas between them (RFC 9110, 5.3), and of bytes the last
// ones count.
func appendSingle(single, pairs []Pair) []Pair {
	for i := range pairs {
		pair := pairs[i]
		if i > 0 && pair.Key == pairs[i-1].Key && pair.Prefix == pairs[i-1].Prefix {
			last := &single[len(single)-1]
			if !grpc.IsBinary(pair.Key) {
				pair.Value = last.Value + "," + pair.Value
			}
			last.Value = pair.Value
			continue
		}
		single = append(single, pair)
	}
	return single
}

// leaveOut drops what only peers of ours are told.
func (h *ReplyHead) leaveOut() {
	h.Code = 0
	if h.Executed != executedNo {
		h.Executed = ""
	}
}

// readReplyHead returns what a reply tells, whether its sender can multiplex,
// and whether it is about to close the connection. It keeps no reference to
// info.
func readReplyHead(info wire.Info) (head ReplyHead, mux, closing bool, err error) {
	if info.Len() == 0 {
		return head, false, false, nil
	}
	var business BusinessStatus
	var metadata pairSet
	for key, value := range info.Strings() {
		switch string(key) {
		case wire.Capabilities:
			mux = hasCapability(value, capabilityMux)
		case wire.CloseConnection:
			closing = string(value) == wire.CloseConnectionValue
		case wire.Executed:
			head.Executed = string(value)
		case wire.Code:
			code, _ := strconv.ParseUint(string(value), 10, 32)
			head.Code = uint32(code)
		case wire.BusinessStatus:
			// What is no number, or too large for one, is none, as Kitex has it.
			business.Status = 0
			if status, parseErr := strconv.ParseInt(string(value), 10, 32); parseErr == nil {
				business.Status = int32(status)
			}
		case wire.BusinessMessage:
			business.Message = thriftwire.CleanMessage(string(value))
		case wire.BusinessExtra:
			if len(value) == 0 {
				continue
			}
			var extra map[string]string
			jsonErr := json.Unmarshal(value, &extra)
			business.Extra, err = extra, nil
			if jsonErr != nil {
				err = replyError(thriftwire.ExceptionInternalError, "%s of the reply is not a JSON object of texts: %.100q", wire.BusinessExtra, value)
			}
		default:
			metadata.add("", key, value)
		}
	}
	head.Metadata = metadata.pairs
	if business.Status == 0 {
		return head, mux, closing, nil
	}
	found := business // would be allocated for every reply if it were the same
	head.Business = &found
	return head, mux, closing, err
}
