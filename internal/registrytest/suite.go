package registrytest

import (
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/internal/testservers"
)

// Test runs all scenarios with real servers. What must hold in each: the last good list
// stays, and when the registry is back everybody is announced again.
func Test(t *testing.T, k Kind) {
	for _, s := range []struct {
		name string
		run  func(*testing.T, Kind)
	}{
		{"KillAndRestart", killAndRestart},
		{"DataLost", dataLost},
		{"EmptiedByHand", emptiedByHand},
		{"Paused", paused},
		{"Partition", partition},
		{"Slow", slow},
		{"ServersAndClients", serversAndClients},
		{"ProcessPaused", processPaused},
		{"ProcessBefore", processBefore},
		{"TwoOfOneAddress", twoOfOneAddress},
		{"WithdrawnDuring", withdrawnDuring},
		{"CloseDuring", closeDuring},
		{"NobodyYet", nobodyYet},
		{"AwayFirst", awayFirst},
		{"Hostile", hostile},
		{"Thousand", thousand},
		{"Refused", refused},
		{"Encrypted", encrypted},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, k)
		})
	}
}

// most is how many instances a scenario has, and few those that need no more.
const most, few = 20, 3

// fleet is some instances that are announced, and looked up by another connection.
type fleet struct {
	registry Registry
	found    *Lookups
	list     []string
	operator Operator
}

// fleetOf announces n instances through one address of a server, and looks them up through
// another.
func fleetOf(t *testing.T, k Kind, n int, server *testservers.Server, announcers, clients string) *fleet {
	t.Helper()
	f := &fleet{registry: k.open(t, announcers, Hasty()), list: Addresses(n), operator: k.Operator(t, server.Address)}
	for _, address := range f.list {
		Announce(t, f.registry, address)
	}
	f.found = Look(t, k.open(t, clients, Hasty()))
	f.found.Know(t, f.list...)
	return f
}

// announced waits until the registry has all of the fleet.
func (f *fleet) announced(t *testing.T) {
	t.Helper()
	Eventually(t, "everybody is announced", func() bool { return f.operator.Count() == len(f.list) })
}

// counted waits until it is counted that instances were announced again, which is when the
// answers are there. Not one for each: who gave up on a request finds what came of it.
func (f *fleet) counted(t *testing.T, k Kind) {
	t.Helper()
	Eventually(t, "somebody was announced again", func() bool { return k.Stats(f.registry).Announced > int64(len(f.list)) })
}

// follows checks that another instance is seen: the watch lives.
func (f *fleet) follows(t *testing.T) {
	t.Helper()
	Announce(t, f.registry, Newcomer)
	f.found.Know(t, append(slices.Clone(f.list), Newcomer)...)
}

// inTime checks that something took no longer than Lease and what is allowed besides.
func (k Kind) inTime(t *testing.T, begin time.Time, besides time.Duration) {
	t.Helper()
	took := time.Since(begin)
	t.Logf("it took %v", took)
	if bound := Lease + besides + Slack; took > bound {
		t.Errorf("it took %v, longer than %v", took, bound)
	}
}
