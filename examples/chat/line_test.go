package main

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzParse gives parse whatever a peer may send as a line. What comes out is
// bounded and has nothing in it that another member's terminal would obey.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"", "hello\n", "/nick alice\r\n", "/join tea", "/who", "/quit now", "/\xff", "\x1b[2J"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		cmd, err := parse(line)
		if err != nil {
			if cmd != (command{}) {
				t.Errorf("%q: %+v with an error", line, cmd)
			}
			cmd.argument = err.Error() // It is sent back.
		}
		if !utf8.ValidString(cmd.argument) || strings.ContainsFunc(cmd.argument, unicode.IsControl) {
			t.Errorf("%q: %q is not harmless", line, cmd.argument)
		}
		if limit := 3*len(line) + 100; len(cmd.argument) > limit { // A replaced byte becomes three.
			t.Errorf("%q: %d bytes of %d", line, len(cmd.argument), len(line))
		}
		switch cmd.verb {
		case "nick", "join":
			if len(cmd.argument) > nameBytes || strings.ContainsFunc(cmd.argument, func(r rune) bool { return r > 'z' || r < '0' }) {
				t.Errorf("%q: the name %q", line, cmd.argument)
			}
		case "say":
			if cmd.argument == "" || cmd.argument[0] == '/' {
				t.Errorf("%q: says %q", line, cmd.argument)
			}
		case "", "who", "quit":
		default:
			t.Errorf("%q: verb %q", line, cmd.verb)
		}
	})
}
