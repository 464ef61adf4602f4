package idl

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Random graphs are compared with what reachability says: two nodes share a
// component if each leads to the other, and a component comes after those that
// it leads to.
func TestComponents_FollowReachability(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		count := 1 + random.IntN(9)
		edges := make([][]int, count)
		nodes := make([]int, count)
		for i := range nodes {
			nodes[i] = i
			for range random.IntN(3) {
				edges[i] = append(edges[i], random.IntN(count))
			}
		}
		found := components(nodes, func(node int) []int { return edges[node] })
		place := make(map[int]int)
		for i, members := range found {
			for _, node := range members {
				place[node] = i
			}
		}
		if total := slices.Concat(found...); len(total) != count || len(place) != count {
			t.Fatalf("seed %d: components %v of %d nodes", seed, found, count)
		}
		for from := range nodes {
			for to := range nodes {
				forth, back := leadsTo(edges, from, to), leadsTo(edges, to, from)
				if same := place[from] == place[to]; same != (forth && back) {
					t.Fatalf("seed %d: %d and %d in %v of %v", seed, from, to, found, edges)
				}
				if forth && place[from] < place[to] {
					t.Fatalf("seed %d: %d comes before %d in %v of %v", seed, from, to, found, edges)
				}
			}
		}
	}
}

func leadsTo(edges [][]int, from, to int) bool {
	seen := make([]bool, len(edges))
	next := []int{from}
	for len(next) > 0 {
		node := next[len(next)-1]
		next = next[:len(next)-1]
		if node == to {
			return true
		}
		if !seen[node] {
			seen[node] = true
			next = append(next, edges[node]...)
		}
	}
	return false
}
