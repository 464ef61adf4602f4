package ttstream_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/internal/wire/ttstream"
)

// TestConn_Kitex reads what a client and a server of Kitex have sent: test/kitex/proxied
// has recorded it. In pieces of any length the same comes of it.
func TestConn_Kitex(t *testing.T) {
	for _, name := range []string{"client", "server"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/kitex/" + name + ".hex")
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := testkit.Hex(string(text))
			if err != nil {
				t.Fatal(err)
			}
			run := func(pieces ...[]byte) string {
				s := newSide(t, ttstream.Config{Client: name == "server"})
				if name == "server" {
					for _, method := range []string{"chat", "list", "collect", "fail", "business", "hang", "seen"} {
						s.open(method)
					}
					s.sent()
				}
				for _, piece := range pieces {
					s.arrive(piece)
				}
				if s.conn.Ours() || len(s.input) != 0 {
					t.Errorf("ours: %v, %d bytes are left", s.conn.Ours(), len(s.input))
				}
				return strings.Join(s.events, "\n") + "\nanswers: " + strings.Join(typesOf(t, s.sent()), " ") + "\n"
			}
			whole := run(recorded)
			if single := run(single(recorded)...); single != whole {
				t.Fatalf("one byte at a time:\n%s\nin one piece:\n%s", single, whole)
			}
			testkit.Golden(t, "testdata/kitex/"+name+".txt", []byte(whole))
		})
	}
}
