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
	file := loadCases(t, "cases.json")
	eachPeer(t, peer.Names(), func(t *testing.T, name string, transport transport) {
		server := serve(t, expectProtocol(t, transport))
		calls, raw := expectedNames(file, name)
		expectOutcomes(t, append(calls, raw...), peer.Call(t, name, transport.name, server.address, "cases.json"))
		// Exceptions of every kind leave the connection usable: one served all
		// cases, and each raw case opens its own.
		connections := 1 + len(raw)
		if !peer.IsPython(name) && name != peer.ApacheGo && !transport.multiplexed {
			connections = kitexConnections(file)
		}
		if accepted := int(server.listener.accepted.Load()); accepted != connections {
			t.Errorf("%d connections, want %d", accepted, connections)
		}
	})
}

// What only a header can carry.
func TestInbound_CouriersGetWhatTheRulesSay(t *testing.T) {
	file := loadCases(t, "courier.json")
	eachPeer(t, []string{peer.Kitex, peer.KitexPlain}, func(t *testing.T, name string, transport transport) {
		if !transport.hasHeader() {
			return
		}
		server := serve(t, expectProtocol(t, transport))
		calls, _ := expectedNames(file, name)
		expectOutcomes(t, calls, peer.Call(t, name, transport.name, server.address, "courier.json"))
		// A Kitex client shares a connection among the calls of one service, also
		// among those that overtake each other.
		if accepted := server.listener.accepted.Load(); transport.multiplexed && accepted != 2 {
			t.Errorf("%d connections for two services", accepted)
		}
	})
}

// expectProtocol returns a function for serve.
func expectProtocol(t *testing.T, transport transport) func(fulmar.Call) {
	return func(call fulmar.Call) {
		if call.Protocol() != transport.protocol {
			t.Errorf("a call arrived as %v", call.Protocol())
		}
	}
}

// expectOutcomes wants a client to have run these cases, and to have found
// nothing wrong.
func expectOutcomes(t *testing.T, wanted []string, outcomes []cases.Outcome) {
	found := map[string]cases.Outcome{}
	for _, outcome := range outcomes {
		found[outcome.Case] = outcome
	}
	for _, what := range wanted {
		t.Run(what, func(t *testing.T) {
			switch outcome, ran := found[what]; {
			case !ran:
				t.Error("the client did not run this case")
			case !outcome.OK:
				t.Error(outcome.Detail)
			}
		})
	}
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

// kitexConnections returns how many connections Kitex's client takes for all
// cases: it drops a connection behind a oneway call and behind an application
// exception, unless it is multiplexed. There are always calls after the last of
// these.
func kitexConnections(file cases.File) int {
	connections := 1
	for _, c := range file.Cases {
		for _, step := range c.All() {
			if c.TakesPart(peer.Kitex, peer.KitexPlain) && (step.Fails != 0 || methods()[step.Method].Oneway) {
				connections++
			}
		}
	}
	return connections
}
