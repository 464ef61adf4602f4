package testkit

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Transcript runs the commands in the file at path through run and fails the
// test if what they return is not what the file says, or rewrites the file with
// the -update flag. A file is read as prose between blocks of the form
//
//	command arguments
//	input, any number of lines
//	----
//	expected output
//
// each ended by an empty line. Lines that start with # belong to the prose.
func Transcript(t *testing.T, path string, run func(command, input string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		if i > 0 {
			got.WriteString("\n")
		}
		block = strings.Trim(block, "\n")
		got.WriteString(transcriptBlock(t, path, block, run))
	}
	Golden(t, path, []byte(got.String()))
}

// transcriptBlock returns a block with the output that run gives now.
func transcriptBlock(t *testing.T, path, block string, run func(command, input string) string) string {
	t.Helper()
	lines := strings.Split(block, "\n")
	first := 0
	for first < len(lines) && strings.HasPrefix(lines[first], "#") {
		first++
	}
	if first == len(lines) {
		return block + "\n"
	}
	rule := first
	for rule < len(lines) && lines[rule] != "----" {
		rule++
	}
	if rule == len(lines) {
		t.Fatalf("%s: block %q has no ---- line", path, lines[first])
	}
	output := strings.TrimRight(run(lines[first], strings.Join(lines[first+1:rule], "\n")), "\n")
	if output == "" || strings.Contains(output, "\n\n") {
		t.Fatalf("%s: the output of %q is empty or holds an empty line, which a transcript cannot show: %q", path, lines[first], output)
	}
	return strings.Join(lines[:rule+1], "\n") + "\n" + output + "\n"
}

// Hex returns the bytes of annotated hex: what follows # on a line is a
// comment, white space does not count.
func Hex(text string) ([]byte, error) {
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for part := range strings.FieldsSeq(line) {
			digits.WriteString(part)
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		return nil, fmt.Errorf("annotated hex: %w", err)
	}
	return b, nil
}
