package calls_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/cases"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

// Clients of the peers call a Fulmar server. They compare what comes back; here it
// is checked that they did, and what only the server can see.

func TestInbound_ClientsGetWhatTheRulesSay(t *testing.T) {
	file := loadCases(t)
	eachPeer(t, peer.Names(), func(t *testing.T, name string, transport transport) {
		address, listener := serve(t, func(protocol fulmar.Protocol) {
			if protocol != transport.protocol {
				t.Errorf("a call arrived as %v", protocol)
			}
		})
		outcomes := map[string]cases.Outcome{}
		for _, outcome := range peer.Call(t, name, transport.name, address, "cases.json") {
			outcomes[outcome.Case] = outcome
		}
		wanted, raw := expectedNames(file, name)
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
		connections := 1 + len(raw)
		if name == peer.Kitex {
			connections = kitexConnections(file)
		}
		if accepted := int(listener.accepted.Load()); accepted != connections {
			t.Errorf("%d connections, want %d", accepted, connections)
		}
	})
}

// kitexConnections returns how many connections Kitex's client takes for all
// cases: it drops a connection behind a oneway call and behind an application
// exception. There are always calls after the last of these.
func kitexConnections(file cases.File) int {
	connections := 1
	for _, c := range file.Cases {
		for _, step := range c.All() {
			if c.TakesPart(peer.Kitex) && (step.Fails != 0 || methods()[step.Method].Oneway) {
				connections++
			}
		}
	}
	return connections
}

// expectedNames returns the cases that a client has to run. Raw cases are the
// same bytes whoever sends them, so only the Python peers do.
func expectedNames(file cases.File, name string) (calls, raw []string) {
	for _, c := range file.Cases {
		if c.TakesPart(name) {
			calls = append(calls, c.Name)
		}
	}
	for _, c := range file.Raw {
		if c.TakesPart(name) && peer.IsPython(name) {
			raw = append(raw, c.Name)
		}
	}
	return calls, raw
}
