package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Whoever can take part has a server and a client, and whoever cannot says why.
func TestContestants_PlayOrSayWhyNot(t *testing.T) {
	for _, c := range contestants() {
		if plays := c.Serve != nil && c.Connect != nil; plays == (c.Unavailable != "") {
			t.Errorf("%s plays: %v, and says %q", c.Name, plays, c.Unavailable)
		}
	}
}
