package main

import (
	"fmt"
	"sync"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// outboxBytes is how much waits for a member who reads slowly: two minutes of
// a busy room. What would exceed it is dropped for this member alone.
const outboxBytes = 64 << 10

// A member is somebody who is connected. Others leave lines in the outbox and
// never wait for the member; one goroutine at a time carries them to the
// connection, and there is none while the outbox is empty.
type member struct {
	conn    *eventloop.Conn
	senders *sync.WaitGroup // Counts the goroutines of all members.

	// ignored are the bytes that came after the end of the chat; of the handler.
	ignored int

	// Guarded by the mutex of the hall.
	name, room string

	mu      sync.Mutex
	outbox  [][]byte
	waiting int // Bytes in outbox.
	lost    int // Lines that did not fit since the last one that did.
	sending bool
}

// post leaves a line for the member. It does not wait. The line must not be
// changed any more, because every member of a room has the same.
func (m *member) post(line []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost > 0 || m.waiting+len(line) > outboxBytes {
		m.lost++ // Until the outbox was emptied, so that the gap is in one place.
		return
	}
	m.outbox = append(m.outbox, line)
	m.waiting += len(line)
	if !m.sending {
		m.sending = true
		m.conn.Hold() // Neither half-close nor shutdown cuts off what waits.
		m.senders.Go(m.send)
	}
}

// send empties the outbox. It waits as long as the member does not read; the
// event loop closes the connection if that takes too long.
func (m *member) send() {
	defer m.conn.Release()
	for {
		lines := m.take()
		if len(lines) == 0 {
			return
		}
		if _, err := m.conn.WriteBuffers(lines); err != nil {
			return // Nothing can be written any more, so sending stays true. onClose hears of it.
		}
	}
}

// take empties the outbox, and says what was lost behind it.
func (m *member) take() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := m.outbox
	if m.lost > 0 {
		lines = append(lines, fmt.Appendf(nil, "* you read too slowly: %d lines lost\n", m.lost))
	}
	m.outbox, m.waiting, m.lost = nil, 0, 0
	m.sending = len(lines) > 0
	return lines
}
