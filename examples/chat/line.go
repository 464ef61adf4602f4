package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What one line may ask for.
const (
	lineBytes = 512 // The longest line, with its end.
	nameBytes = 20  // The longest name of a member or a room.
)

// A command is one line, understood.
type command struct {
	verb     string // "nick", "join", "who", "quit" or "say"
	argument string // The name for nick and join, the text for say.
}

// parse understands a line. It returns no command and no error for an empty
// one.
func parse(line []byte) (command, error) {
	text := clean(bytes.TrimRight(line, "\r\n"))
	if text == "" {
		return command{}, nil
	}
	if !strings.HasPrefix(text, "/") {
		return command{"say", text}, nil
	}
	verb, argument, _ := strings.Cut(text[1:], " ")
	switch verb {
	case "nick", "join":
		if err := checkName(argument); err != nil {
			return command{}, err
		}
		return command{verb, argument}, nil
	case "who", "quit":
		if argument != "" {
			return command{}, fmt.Errorf("/%s takes no argument", verb)
		}
		return command{verb, ""}, nil
	}
	return command{}, errors.New("there are /nick NAME, /join ROOM, /who and /quit")
}

// clean makes text harmless to the terminals of others: whatever is neither
// printable nor a space, such as an escape sequence or half a character, is
// replaced.
func clean(line []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, string(bytes.TrimSpace(line)))
}

// checkName wants letters and digits of ASCII, so that no two names look alike
// and none looks like what the chat itself says.
func checkName(name string) error {
	if name == "" || len(name) > nameBytes {
		return fmt.Errorf("a name has 1 to %d letters and digits (got %d)", nameBytes, len(name))
	}
	for _, r := range name {
		if r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return fmt.Errorf("a name has letters and digits only (got %q)", r)
		}
	}
	return nil
}
