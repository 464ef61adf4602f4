package governance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Network is servers that answer in memory: whoever writes a call of the method echo of
// echo.thrift finds the reply when he reads next, on the same goroutine. So a call costs
// its client and nothing else. Connections may be dialled concurrently; each is used by
// one goroutine at a time.
type Network struct {
	mu sync.Mutex
	// calls are how many each address has got.
	calls map[string]*uint64
	// Broken lets all connections end where a reply is due. It is set between calls.
	Broken bool
}

// NewNetwork returns a network in which every address answers.
func NewNetwork() *Network { return &Network{calls: map[string]*uint64{}} }

// Dial returns a connection to an address.
func (n *Network) Dial(address string) net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := n.calls[address]
	if count == nil {
		count = new(uint64)
		n.calls[address] = count
	}
	return &memoryConn{network: n, address: address, calls: count}
}

// Calls returns how many calls each address has got. No call may run meanwhile.
func (n *Network) Calls() map[string]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls := map[string]uint64{}
	for address, count := range n.calls {
		calls[address] = *count
	}
	return calls
}

// memoryConn is a connection of a client. Deadlines have no meaning, because nothing
// waits.
type memoryConn struct {
	network *Network
	address string
	calls   *uint64
	// received is what of a request has come, and reply what is left to be read.
	received, reply []byte
	answer          []byte // the memory of reply
	closed          bool
}

var _ net.Conn = (*memoryConn)(nil)

// Write takes a part of a request, and answers when it is complete.
func (c *memoryConn) Write(p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	request := p
	if len(c.received) > 0 || !whole(p) {
		c.received = append(c.received, p...)
		if request = c.received; !whole(request) {
			return len(p), nil
		}
	}
	*c.calls++
	answer, err := appendAnswer(c.answer[:0], request)
	if err != nil {
		return 0, err
	}
	c.received = c.received[:0]
	c.answer, c.reply = answer, answer
	return len(p), nil
}

// Read returns what is there of a reply. There is no other moment at which one could come.
func (c *memoryConn) Read(p []byte) (int, error) {
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.network.Broken:
		return 0, io.EOF
	case len(c.reply) == 0:
		return 0, errors.New("memory connection: a read without a request would wait for ever")
	}
	n := copy(p, c.reply)
	c.reply = c.reply[n:]
	return n, nil
}

func (c *memoryConn) Close() error {
	c.closed = true
	return nil
}

func (c *memoryConn) LocalAddr() net.Addr              { return memoryAddress("memory") }
func (c *memoryConn) RemoteAddr() net.Addr             { return memoryAddress(c.address) }
func (c *memoryConn) SetDeadline(time.Time) error      { return nil }
func (c *memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }

type memoryAddress string

func (memoryAddress) Network() string  { return "tcp" }
func (a memoryAddress) String() string { return string(a) }

// A framed message of Thrift Binary: length, version and type, length of the name, name,
// sequence id, and a struct, which here has one field of struct type.
const (
	lengthBytes  = 4
	typeAt       = 7 // the last byte of version and type
	nameLengthAt = 8
	nameAt       = 12
	fieldIDAt    = 4 + 1 // behind the name: sequence id and type of the field
	typeCall     = 1
	typeReply    = 2
	argumentID   = 1
	typeStruct   = 12
)

// whole reports whether a message is complete.
func whole(message []byte) bool {
	return len(message) >= lengthBytes && len(message) >= lengthBytes+int(binary.BigEndian.Uint32(message))
}

// appendAnswer appends the reply to a call of echo: the same message as result in place of
// the argument, whose id is 0.
func appendAnswer(memory, request []byte) ([]byte, error) {
	if len(request) != lengthBytes+int(binary.BigEndian.Uint32(request)) || len(request) < nameAt {
		return nil, fmt.Errorf("memory connection: %d bytes in a request of %d", len(request)-lengthBytes, binary.BigEndian.Uint32(request))
	}
	field := nameAt + int(binary.BigEndian.Uint32(request[nameLengthAt:])) + fieldIDAt
	if field < nameAt || field+2 > len(request) || request[typeAt] != typeCall || request[field-1] != typeStruct || binary.BigEndian.Uint16(request[field:]) != argumentID {
		return nil, errors.New("memory connection: the request is no framed call of echo")
	}
	answer := append(slices.Grow(memory, len(request)), request...)
	answer[typeAt] = typeReply
	binary.BigEndian.PutUint16(answer[field:], 0)
	return answer, nil
}
