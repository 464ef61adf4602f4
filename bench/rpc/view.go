package rpc

import "github.com/fulmar-rpc/fulmar/bench/harness"

// The contestants of suite view with calls. Clients of all have structs: what is compared is the
// server, or the gateway between.
const (
	oursView   = "fulmar-view"
	oursStruct = "fulmar-struct"
)

// One Part of them takes itemBytes in a message.
const itemBytes = 29

// ViewCases returns the cases of suite view with calls: echoes of one long text, echoes of many
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

// ViewCalls describes the cases of suite view with calls to the runner. Floors are for
// throughput and processor time of echoes of one text, so quick runs have no open loops.
func ViewCalls() []harness.Case {
	var cases []harness.Case
	for _, c := range ViewCases() {
		played := c.harness()
		played.Pairs, played.Open = harness.Against(oursView, oursStruct, "kitex"), harness.OpenUnlessQuick
		if !c.Hop && c.Items == 0 {
			played.Quick = harness.Against(oursView, oursStruct)
		}
		cases = append(cases, played)
	}
	return cases
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
