package cluster

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answerTimes is how long the answers of one lookup hold. Package net does not tell, so
// they are read along with it: it goes on to know resolv.conf, hosts files, search lists
// and retries. Safe for concurrent use: it asks for several types at a time.
type answerTimes struct {
	mu    sync.Mutex
	least time.Duration
	known bool
}

// dialer opens a connection, as net.Dialer does.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// resolver returns one that asks DNS by itself, as package net does too where neither
// nsswitch.conf nor the system says otherwise, and notes how long answers hold.
func (t *answerTimes) resolver(dial dialer) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// Package net tells by the type whether messages have their length in front.
		if datagrams, ok := conn.(*net.UDPConn); ok {
			return &datagramAnswers{UDPConn: datagrams, times: t}, nil
		}
		return &streamAnswers{Conn: conn, times: t}, nil
	}}
}

// datagramAnswers is a connection on which each read is a message.
type datagramAnswers struct {
	*net.UDPConn
	times *answerTimes
}

func (c *datagramAnswers) Read(b []byte) (int, error) {
	n, err := c.UDPConn.Read(b)
	c.times.note(b[:n])
	return n, err
}

// streamAnswers is a connection on which messages have their length in two bytes in front.
type streamAnswers struct {
	net.Conn
	times *answerTimes
	// read is what has come of a message, with its length: 64 KiB at most.
	read []byte
}

func (c *streamAnswers) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for came := b[:n]; len(came) > 0; {
		missing := 2 - len(c.read)
		if missing <= 0 {
			missing = 2 + int(binary.BigEndian.Uint16(c.read)) - len(c.read)
		}
		part := came[:min(missing, len(came))]
		c.read, came = append(c.read, part...), came[len(part):]
		if len(c.read) >= 2 && len(c.read) == 2+int(binary.BigEndian.Uint16(c.read)) {
			c.times.note(c.read[2:])
			c.read = c.read[:0]
		}
	}
	return n, err
}

// note reads a message: the answer with the shortest time counts, of those that lead to an
// instance. Whatever else it is, package net says what is wrong.
func (t *answerTimes) note(message []byte) {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || !header.Response || header.RCode != dnsmessage.RCodeSuccess || parser.SkipAllQuestions() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		answer, err := parser.AnswerHeader()
		if err != nil {
			return
		}
		switch answer.Type {
		case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeSRV, dnsmessage.TypeCNAME:
			if holds := time.Duration(answer.TTL) * time.Second; !t.known || holds < t.least {
				t.least, t.known = holds, true
			}
		}
		if parser.SkipAnswer() != nil {
			return
		}
	}
}

// holds returns how long the answers hold; ok is false if none said so.
func (t *answerTimes) holds() (least time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.least, t.known
}
