package fulmar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/transport"
	"github.com/fulmar-rpc/fulmar/policy"
)

// TestLists_WhoIsBackHasItsPeer: the first of its address that leaves and is not retired, as
// if each were looked for by itself; the others leave as before.
func TestLists_WhoIsBackHasItsPeer(t *testing.T) {
	const addresses, rounds = 40, 500
	random := rand.New(rand.NewPCG(1, 2))
	s := newInstances("mine:///shop", policy.Client{}, func(string) *transport.Peer { return new(transport.Peer) })
	now, revived, twice := time.Now(), 0, 0
	var past []*cluster.Member
	for range rounds {
		var list []cluster.Instance
		for _, i := range random.Perm(addresses)[:random.IntN(addresses)] {
			list = append(list, cluster.Instance{Address: fmt.Sprintf("server%d:1", i)})
		}
		members := s.balancer.Members()
		left := slices.Clone(s.leaving)
		s.update(list, now)
		for _, m := range s.balancer.Members() {
			if slices.Contains(members, m) {
				continue
			}
			is := func(l leavingPeer) bool { return !l.retired && l.address == m.Address() }
			var want *transport.Peer
			if i := slices.IndexFunc(left, is); i >= 0 {
				want = left[i].peer
				left = slices.Delete(left, i, i+1)
				revived++
				if slices.ContainsFunc(left, is) {
					twice++
				}
			}
			if peerOf(m) != want {
				t.Fatalf("%s has another peer than it should", m.Address())
			}
		}
		if len(s.leaving) < len(left) || !slices.Equal(s.leaving[:len(left)], left) {
			t.Fatalf("%d leave of %d, in another order", len(s.leaving), len(left))
		}
		// Some get calls, also very late ones, and some of those that leave are retired.
		past = append(past, members...)
		past = past[max(0, len(past)-5*addresses):]
		for _, m := range slices.Concat(past, s.balancer.Members()) {
			if random.IntN(10) == 0 {
				s.makePeer(m)
			}
		}
		for i := range s.leaving {
			s.leaving[i].retired = s.leaving[i].retired || random.IntN(8) == 0
		}
		s.leaving = s.leaving[max(0, len(s.leaving)-2*addresses):]
	}
	if revived < rounds || twice < rounds/50 {
		t.Errorf("%d have got a peer back, %d of them had two: too few to tell", revived, twice)
	}
}
