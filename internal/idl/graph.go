package idl

// components returns the strongly connected components of a graph: groups of
// nodes that all lead to each other. A component comes before those that lead
// to it. The search keeps its own stack, because chains can be as long as the
// input.
func components[N comparable](nodes []N, edges func(N) []N) [][]N {
	search := &componentSearch[N]{edges: edges, index: make(map[N]int), low: make(map[N]int), open: make(map[N]bool)}
	for _, node := range nodes {
		if search.index[node] == 0 {
			search.from(node)
		}
	}
	return search.found
}

// componentSearch is Tarjan's algorithm.
type componentSearch[N comparable] struct {
	edges func(N) []N
	// index numbers nodes in the order in which they were met, from 1; low is
	// the smallest index that a node leads to.
	index, low map[N]int
	// waiting holds met nodes whose component is not complete; open is the same
	// as a set.
	waiting []N
	open    map[N]bool
	found   [][]N
}

type componentVisit[N comparable] struct {
	node N
	rest []N // edges not yet followed
}

func (s *componentSearch[N]) enter(node N) componentVisit[N] {
	s.index[node] = len(s.index) + 1
	s.low[node] = s.index[node]
	s.waiting = append(s.waiting, node)
	s.open[node] = true
	return componentVisit[N]{node: node, rest: s.edges(node)}
}

func (s *componentSearch[N]) from(start N) {
	visits := []componentVisit[N]{s.enter(start)}
	for len(visits) > 0 {
		top := &visits[len(visits)-1]
		if len(top.rest) == 0 {
			s.leave(top.node)
			visits = visits[:len(visits)-1]
			if len(visits) > 0 {
				parent := visits[len(visits)-1].node
				s.low[parent] = min(s.low[parent], s.low[top.node])
			}
			continue
		}
		next := top.rest[0]
		top.rest = top.rest[1:]
		if s.index[next] == 0 {
			visits = append(visits, s.enter(next))
		} else if s.open[next] {
			s.low[top.node] = min(s.low[top.node], s.index[next])
		}
	}
}

// leave completes a component if node is the first of its nodes that was met.
func (s *componentSearch[N]) leave(node N) {
	if s.low[node] != s.index[node] {
		return
	}
	for i := len(s.waiting) - 1; ; i-- {
		s.open[s.waiting[i]] = false
		if s.waiting[i] == node {
			s.found = append(s.found, append([]N(nil), s.waiting[i:]...))
			s.waiting = s.waiting[:i]
			return
		}
	}
}
