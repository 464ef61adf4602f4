package contestant

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// Question is what a client asks the server's process, one line of JSON on the
// file descriptor that the flag -control names. The two ends are a pair of
// sockets that the runner makes and whose reads block a thread, not the network
// poller, so that a library that brings its own is not kept company by Go's.
type Question struct {
	// Collect asks for two garbage collections first: the first one only makes
	// pools let go of what they keep.
	Collect bool `json:"collect,omitempty"`
}

// Answer is the reply to a Question, also one line.
type Answer struct {
	// Allocations counts objects since the process began, and Executed the calls
	// that handlers have executed, in cases where callers cannot know; Nanoseconds
	// is when that was, on a clock of the server's.
	Allocations uint64 `json:"allocations"`
	Executed    uint64 `json:"executed,omitempty"`
	Nanoseconds int64  `json:"nanoseconds"`
	// HeapBytes is the heap. MemoryBytes has, beside it, what depends on
	// connections: stacks, and what the runtime keeps outside of the heap for
	// spans, goroutines and polled descriptors.
	HeapBytes   uint64 `json:"heap_bytes"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// control is the client's end. nil is valid: nobody is there to be asked.
type control struct {
	file  io.ReadWriter
	lines *bufio.Scanner
}

// openControl returns the end with that file descriptor, or nil for 0.
func openControl(descriptor int) *control {
	if descriptor <= 0 {
		return nil
	}
	return newControl(os.NewFile(uintptr(descriptor), "control"))
}

func newControl(file io.ReadWriter) *control {
	return &control{file: file, lines: bufio.NewScanner(file)}
}

// errNoControl is what a case says that needs to ask the server, by hand.
var errNoControl = errors.New("this case needs -control, which the runner gives")

func (c *control) ask(question Question) (Answer, error) {
	if c == nil {
		return Answer{}, errNoControl
	}
	line, err := json.Marshal(question)
	if err == nil {
		_, err = c.file.Write(append(line, '\n'))
	}
	if err != nil {
		return Answer{}, fmt.Errorf("asking the server: %w", err)
	}
	if !c.lines.Scan() {
		return Answer{}, fmt.Errorf("asking the server: no answer: %w", errors.Join(c.lines.Err(), io.ErrUnexpectedEOF))
	}
	var answer Answer
	if err := json.Unmarshal(c.lines.Bytes(), &answer); err != nil {
		return Answer{}, fmt.Errorf("asking the server: %w", err)
	}
	return answer, nil
}

// answerQuestions is the server's end, until the client's is closed. executed may
// be nil.
func answerQuestions(file io.ReadWriter, executed func() uint64) error {
	begun := time.Now()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var question Question
		if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
			return fmt.Errorf("question: %w", err)
		}
		if question.Collect {
			runtime.GC()
			runtime.GC()
		}
		line, err := json.Marshal(newAnswer(begun, executed))
		if err == nil {
			_, err = file.Write(append(line, '\n'))
		}
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	return lines.Err()
}

func newAnswer(begun time.Time, executed func() uint64) Answer {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	answer := Answer{
		Nanoseconds: time.Since(begun).Nanoseconds(), Allocations: stats.Mallocs, HeapBytes: stats.HeapAlloc,
		MemoryBytes: stats.HeapAlloc + stats.StackInuse + stats.MSpanInuse + stats.MCacheInuse + stats.OtherSys,
	}
	if executed != nil {
		answer.Executed = executed()
	}
	return answer
}
