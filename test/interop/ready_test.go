package interop_test

import (
	"os"
	"testing"

	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// The tests in calls do not compile without generated code, and the compiler's
// message does not say what to do about it. These do.

func TestReady_CodeIsGenerated(t *testing.T) {
	for _, folder := range []string{"base", "everything", "everythingapache"} {
		if _, err := os.Stat("gen/" + folder); err != nil {
			t.Errorf("%v: run \"make generate\" at the root of the repository", err)
		}
	}
}

func TestReady_CodeOfThePeersIsGenerated(t *testing.T) {
	for _, folder := range []string{"kitex/gen/everything", "kitex/gen/courier", "apache/gen/everything", "apache/gen/rules"} {
		if _, err := os.Stat("../" + folder); err != nil {
			t.Errorf("%v: run \"make generate\" at the root of the repository", err)
		}
	}
}

func TestReady_PythonHasThePeers(t *testing.T) {
	peer.Interpreter(t)
}
