package proxied_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

// roleVariable tells a process which role it plays, with its arguments.
const roleVariable = "FULMAR_PROXIED_ROLE"

func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(roleVariable)); len(words) > 0 {
		play(words[0], words[1:])
		return
	}
	testkit.Main(m)
}

// play runs a role until it is over, or standard input ends.
func play(role string, arguments []string) {
	roles := map[string]func([]string) error{
		"protobuf-server": serveProtobuf, "protobuf-client": callProtobuf,
		"generic-server": serveGeneric, "generic-client": callGeneric,
		"streams-server": serveStreams, "streams-client": callStreams,
		"shop-server": serveShop, "shop-client": callShop,
	}
	if err := roles[role](arguments); err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		panic(role)
	}
}

// start starts a role, and returns what it prints.
func start(t *testing.T, role ...string) *bufio.Reader {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), roleVariable+"="+strings.Join(role, " "))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, output)
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	})
	return bufio.NewReader(output)
}

// startServer starts a role that prints its address.
func startServer(t *testing.T, role ...string) string {
	t.Helper()
	line, err := start(t, role...).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	return strings.TrimSpace(line)
}

// outcome is what a client of Kitex got for a call.
type outcome struct {
	Case string
	// Reply is the text, or its length if it is long.
	Reply string `json:",omitempty"`
	// Exception is the type of one, with its text.
	Exception int32  `json:",omitempty"`
	Text      string `json:",omitempty"`
	// Status, Message and Extra are those of a business error.
	Status  int32             `json:",omitempty"`
	Message string            `json:",omitempty"`
	Extra   map[string]string `json:",omitempty"`
	// Back is what came back with the reply.
	Back string `json:",omitempty"`
}

// outcomes runs a client's role and returns what it got, one line a call.
func outcomes(t *testing.T, role ...string) []string {
	t.Helper()
	text, err := io.ReadAll(start(t, role...))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" })
}

// tell prints an outcome.
func tell(o outcome) error { return json.NewEncoder(os.Stdout).Encode(o) }

// compare reports each call that ended in another way than it should.
func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d calls were made, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}
