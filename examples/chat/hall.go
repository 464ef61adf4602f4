package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

const (
	firstRoom = "lobby"
	// stopTimeout is how long a stop waits for members to read what was said.
	stopTimeout = 5 * time.Second
	// ignoredBytes is how much a member may send after the end: what was under way.
	ignoredBytes = 256 << 10
	// namesMax is how many names one /who lists.
	namesMax = 50
)

var (
	errQuit    = errors.New("quit")
	errOver    = errors.New("the chat is over")
	errTooLong = fmt.Errorf("a line has at most %d bytes", lineBytes)
)

// A hall is the server: rooms with members.
type hall struct {
	listener *eventloop.Listener
	senders  sync.WaitGroup

	// One for all rooms. Nothing waits for a connection while it is held.
	mu       sync.Mutex
	members  map[string]*member // By name.
	rooms    map[string]map[*member]bool
	stopping bool
}

func newHall(address string, config eventloop.Config) (*hall, error) {
	h := &hall{members: map[string]*member{}, rooms: map[string]map[*member]bool{}}
	config.OnOpen, config.OnEOF, config.OnClose = h.onOpen, h.onEOF, h.onClose
	// Far more than a line, far less than the default: thousands of members who
	// begin a line and do not end it shall cost little.
	config.ReadBufferBytes = 8 * lineBytes
	var err error
	h.listener, err = eventloop.Listen("tcp", address, config)
	return h, err
}

// serve returns when ctx has ended and everybody is gone, or when the listening
// socket has failed.
func (h *hall) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- h.listener.Serve(context.WithoutCancel(ctx), h.handle) }()
	var err error
	select {
	case <-ctx.Done():
		err = h.stop()
		err = errors.Join(err, <-served)
	case err = <-served:
		err = errors.Join(err, h.stop())
	}
	h.senders.Wait()
	return err
}

// stop says goodbye to everybody, and lets them read what was said before.
func (h *hall) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := h.listener.StopAccepting()
	h.mu.Lock()
	h.stopping = true
	for room := range h.rooms {
		h.tell(room, nil, "* the chat is over")
	}
	h.mu.Unlock()
	for conn := range h.listener.Connections {
		conn.Wake() // A line that was begun would hold up Shutdown: the handler drops it.
	}
	return errors.Join(err, h.listener.Shutdown(ctx))
}

func (h *hall) onOpen(conn *eventloop.Conn) {
	conn.SetContext(&member{conn: conn, senders: &h.senders})
}

// onEOF takes a half-close for a goodbye. What waits for the member still
// arrives there, because the goroutine that sends it holds the connection.
func (h *hall) onEOF(conn *eventloop.Conn) { h.leave(conn, "left") }

func (h *hall) onClose(conn *eventloop.Conn, err error) {
	switch {
	case err == nil, errors.Is(err, errQuit), errors.Is(err, errTooLong), errors.Is(err, errOver):
		h.leave(conn, "left")
	case errors.Is(err, eventloop.ErrWriteStalled):
		h.leave(conn, "does not read and was sent away")
	default:
		h.leave(conn, "was cut off")
	}
}

// handle handles one line. The event loop calls it again while there are more.
func (h *hall) handle(conn *eventloop.Conn) error {
	m := conn.Context().(*member)
	h.mu.Lock()
	stopping := h.stopping
	h.mu.Unlock()
	if stopping {
		// Who goes on sending would hold up Shutdown for ever.
		if m.ignored += conn.Reader().Len(); m.ignored > ignoredBytes {
			return errOver
		}
		return conn.Reader().Skip(conn.Reader().Len())
	}
	line, err := conn.Reader().Until('\n')
	if errors.Is(err, eventloop.ErrMore) && conn.Reader().Len() < lineBytes {
		return err
	}
	if err != nil || len(line) > lineBytes {
		reply(conn, "! %v", errTooLong)
		return errTooLong
	}
	cmd, err := parse(line)
	if err != nil {
		reply(conn, "! %v", err)
		return nil
	}
	return h.do(m, cmd)
}

// reply answers the member whose line is being handled. Replies to lines that
// arrived together leave together. If the member does not read them, it is this
// connection alone that waits, and is not read meanwhile.
func reply(conn *eventloop.Conn, format string, arguments ...any) {
	conn.Writer().Append(fmt.Appendf(nil, format+"\n", arguments...))
}

// do obeys a command. An error ends the connection.
func (h *hall) do(m *member, cmd command) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch cmd.verb {
	case "":
	case "quit":
		h.goAway(m, "left")
		reply(m.conn, "* goodbye")
		return errQuit
	case "nick":
		h.rename(m, cmd.argument)
	default:
		if m.name == "" {
			reply(m.conn, "! who are you? Say /nick NAME")
			return nil
		}
		switch cmd.verb {
		case "join":
			h.enter(m, cmd.argument)
		case "who":
			reply(m.conn, "* in %s: %s", m.room, h.names(m.room))
		case "say":
			h.tell(m.room, m, "<"+m.name+"> "+cmd.argument)
		}
	}
	return nil
}

// The methods below want the mutex to be held.

// tell leaves a line for everybody in a room except one.
func (h *hall) tell(room string, except *member, line string) {
	bytes := []byte(line + "\n")
	for m := range h.rooms[room] {
		if m != except {
			m.post(bytes)
		}
	}
}

func (h *hall) rename(m *member, name string) {
	if h.members[name] != nil {
		reply(m.conn, "! %s is somebody else, or you", name)
		return
	}
	old := m.name
	delete(h.members, old)
	h.members[name], m.name = m, name
	reply(m.conn, "* you are %s", name)
	if old == "" {
		h.enter(m, firstRoom)
	} else {
		h.tell(m.room, m, "* "+old+" is "+name+" now")
	}
}

func (h *hall) enter(m *member, room string) {
	if m.room == room {
		reply(m.conn, "! you are there")
		return
	}
	h.goOut(m, "went to "+room)
	h.tell(room, m, "* "+m.name+" came")
	if h.rooms[room] == nil {
		h.rooms[room] = map[*member]bool{}
	}
	h.rooms[room][m], m.room = true, room
	reply(m.conn, "* in %s: %s", room, h.names(room))
}

// goOut takes a member out of its room, and says so to the others.
func (h *hall) goOut(m *member, how string) {
	if m.room == "" {
		return
	}
	delete(h.rooms[m.room], m)
	if len(h.rooms[m.room]) == 0 {
		delete(h.rooms, m.room)
	}
	if !h.stopping { // Then all go, and were told.
		h.tell(m.room, m, "* "+m.name+" "+how)
	}
	m.room = ""
}

func (h *hall) goAway(m *member, how string) {
	h.goOut(m, how)
	delete(h.members, m.name)
	m.name = ""
}

// names lists who is in a room, or some of them.
func (h *hall) names(room string) string {
	var names []string
	for m := range h.rooms[room] {
		if len(names) == namesMax {
			break
		}
		names = append(names, m.name)
	}
	slices.Sort(names)
	if more := len(h.rooms[room]) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, " ")
}

// leave forgets a member whose connection ends. It may be called again.
func (h *hall) leave(conn *eventloop.Conn, how string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.goAway(conn.Context().(*member), how)
}
