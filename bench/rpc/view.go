package rpc

import "github.com/fulmar-rpc/fulmar/bench/harness"

// The contestants of suite view-calls. Clients of all have structs: what is compared is the
// server, or the gateway between.
const (
	oursView   = "fulmar-view"
	oursStruct = "fulmar-struct"
)

// The sizes of suite view-calls. One Part of them takes itemBytes in a message.
const itemBytes = 29

// ViewCases returns the cases of suite view-calls: echoes of one long text, echoes of many
// short structs, and calls through a gateway that sets a field.
func ViewCases() []Case {
	const kilo, mega = 1 << 10, 1 << 20
	var cases []Case
	for _, size := range []struct {
		name           string
		bytes, callers int
	}{
		{"1k", kilo, 100}, {"2k", 2 * kilo, 100}, {"4k", 4 * kilo, 100}, {"32k", 32 * kilo, 16}, {"1m", mega, 4}, {"10m", 10 * mega, 2},
	} {
		cases = append(cases,
			Case{Name: "echo-" + size.name, Callers: size.callers, MessageBytes: size.bytes},
			Case{Name: "echo-items-" + size.name, Callers: size.callers, Items: size.bytes / itemBytes})
		if size.name == "1k" || size.name == "32k" || size.name == "1m" {
			cases = append(cases, Case{Name: "hop-" + size.name, Callers: size.callers, Items: size.bytes / itemBytes, Hop: true})
		}
	}
	return cases
}

// ViewSuite describes the suite view-calls to the runner.
func ViewSuite() harness.Suite {
	suite := harness.Suite{
		Name:     "view-calls",
		Deciding: harness.Pinned,
		Programs: []harness.Program{
			{Module: "bench", Package: "fulmar", Contestants: []string{oursView, oursStruct}},
			{Module: "bench/peers", Package: "kitex", Contestants: []string{"kitex"}},
		},
	}
	for _, c := range ViewCases() {
		played := c.harness()
		played.Pairs = harness.Against(oursView, oursStruct, "kitex")
		played.Quick = nil
		if c.Name == "echo-1k" || c.Name == "echo-items-32k" || c.Name == "hop-32k" {
			played.Quick = harness.Against(oursView, oursStruct, "kitex")
		}
		suite.Cases = append(suite.Cases, played)
	}
	return suite
}

// complexes are the requests of one caller of the method complex.
func (c Case) complexes(caller int) []*Complex {
	if c.Items == 0 {
		return NewComplexes(caller)
	}
	made := make([]*Complex, variants)
	for i := range made {
		random := newRandom(caller, i)
		made[i] = &Complex{
			Action: action(caller, i), Msg: random.text(partText), ByName: map[string]Part{},
			Parts: random.parts(c.Items, partText), Flag: Group{Part: random.part(partText)},
		}
	}
	return made
}
