// Package ledger keeps books of calls: what callers were told of each, and what
// servers did, also if they were killed. Then it compares the two.
package ledger

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fulmar-rpc/fulmar"
)

// Outcome is what a caller was told.
type Outcome uint8

// The outcomes. A call without one has not ended.
const (
	None Outcome = iota
	// Success: a reply came.
	Success
	// NotExecuted: it failed, and the handler did not run.
	NotExecuted
	// Maybe: it failed, and nobody knows.
	Maybe
	// Executed: it failed, and the handler ran.
	Executed
)

// Call is one call as its caller saw it.
type Call struct {
	ID      uint64
	Outcome Outcome
	// ReplyID is the id that came back.
	ReplyID uint64
	// Repeatable calls may run more than once.
	Repeatable bool
	// Began is when it was entered.
	Began time.Time
	// Took is how long it took, Limit how long it might have.
	Took, Limit time.Duration
	// Err is what it failed with.
	Err error
}

// Book has the calls of one caller. It is used by one goroutine at a time.
type Book struct {
	calls []Call
	next  uint64
}

// NewBook returns an empty book whose ids are those of no other caller below
// 2^24 numbers.
func NewBook(caller int) *Book { return &Book{next: uint64(caller)<<40 + 1} }

// Begin enters a call and returns its id. End must follow.
func (b *Book) Begin(repeatable bool, limit time.Duration) uint64 {
	id := b.next
	b.next++
	b.calls = append(b.calls, Call{ID: id, Began: time.Now(), Repeatable: repeatable, Limit: limit})
	return id
}

// End enters what became of the call that began last.
func (b *Book) End(replyID uint64, took time.Duration, err error) *Call {
	call := &b.calls[len(b.calls)-1]
	call.ReplyID, call.Took, call.Err, call.Outcome = replyID, took, err, OutcomeOf(err)
	return call
}

// Calls returns what was entered.
func (b *Book) Calls() []Call { return b.calls }

// OutcomeOf returns what an error of a call says of its handler.
func OutcomeOf(err error) Outcome {
	var e *fulmar.Error
	switch {
	case err == nil:
		return Success
	case !errors.As(err, &e):
		return Executed // An exception that the definition declares.
	case e.Executed() == fulmar.ExecutedNo:
		return NotExecuted
	case e.Executed() == fulmar.ExecutedYes:
		return Executed
	}
	return Maybe
}

// Journal is where a server enters the calls that it runs. What is in it survives
// the end of the process, however that comes. Safe for concurrent use.
type Journal struct{ file *os.File }

// entryBytes is the length of an entry: an id, and 1 if the call had expired.
const entryBytes = 9

// OpenJournal opens a journal to go on with it.
func OpenJournal(name string) (*Journal, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: file}, nil
}

// Enter notes that a handler runs, before it does anything else.
func (j *Journal) Enter(id uint64, expired bool) error {
	var entry [entryBytes]byte
	binary.BigEndian.PutUint64(entry[:], id)
	if expired {
		entry[8] = 1
	}
	// One write, which others do not come between.
	if _, err := j.file.Write(entry[:]); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Close closes the journal.
func (j *Journal) Close() error { return j.file.Close() }

// Executions is what servers did, by id.
type Executions struct {
	Times   map[uint64]int
	Expired int
}

// Len returns how many there were.
func (e *Executions) Len() (n int) {
	for _, times := range e.Times {
		n += times
	}
	return n
}

// Read adds what a journal has.
func (e *Executions) Read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if e.Times == nil {
		e.Times = map[uint64]int{}
	}
	reader := bufio.NewReader(file)
	for {
		var entry [entryBytes]byte
		switch _, err := io.ReadFull(reader, entry[:]); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("journal %s: %w", name, err)
		}
		e.Times[binary.BigEndian.Uint64(entry[:])]++
		e.Expired += int(entry[8])
	}
}
