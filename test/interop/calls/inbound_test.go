package calls_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// Clients in Python call a Fulmar server. They compare what comes back; here it
// is checked that they did, and what only the server can see.

func TestInbound_PythonClientsGetWhatTheRulesSay(t *testing.T) {
	cases := loadCases(t)
	eachPeer(t, peer.Runtimes(), func(t *testing.T, name, transport string) {
		address, listener := serve(t, func(protocol fulmar.Protocol) {
			if protocol != protocols()[transport] {
				t.Errorf("a call arrived as %v", protocol)
			}
		})
		outcomes := map[string]peer.Outcome{}
		for _, outcome := range peer.Call(t, name, transport, address) {
			outcomes[outcome.Case] = outcome
		}
		wanted, raw := expectedNames(cases, name)
		for _, what := range append(wanted, raw...) {
			t.Run(what, func(t *testing.T) {
				switch outcome, ran := outcomes[what]; {
				case !ran:
					t.Error("the client did not run this case")
				case !outcome.OK:
					t.Error(outcome.Detail)
				}
			})
		}
		// Exceptions of every kind leave the connection usable: one served all
		// cases, and each raw case opens its own.
		if accepted := int(listener.accepted.Load()); accepted != 1+len(raw) {
			t.Errorf("%d connections, want %d", accepted, 1+len(raw))
		}
	})
}

// expectedNames returns the cases that a client on a runtime has to run.
func expectedNames(cases caseFile, runtime string) (calls, raw []string) {
	for _, c := range cases.Cases {
		if takesPart(c.Without, runtime) {
			calls = append(calls, c.Name)
		}
	}
	for _, c := range cases.Raw {
		if takesPart(c.Without, runtime) {
			raw = append(raw, c.Name)
		}
	}
	return calls, raw
}
