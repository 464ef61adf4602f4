//go:build linux

package main

import (
	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/echo"
	"github.com/fulmar-rpc/fulmar/bench/rpc"
)

func newPart(p rpc.Part) *echo.Part { return &echo.Part{Number: &p.Number, Value: &p.Value} }

func newParts(parts []rpc.Part) []*echo.Part {
	made := make([]*echo.Part, len(parts))
	for i, p := range parts {
		made[i] = newPart(p)
	}
	return made
}

func newGroup(g rpc.Group) *echo.Group {
	return &echo.Group{Number: &g.Number, Value: &g.Value, Parts: newParts(g.Parts)}
}

func newComplex(data *rpc.Complex) *echo.Complex {
	made := &echo.Complex{
		Action: data.Action, Msg: data.Msg, ByName: map[string]*echo.Part{},
		Parts: newParts(data.Parts), Flag: newGroup(data.Flag),
	}
	for name, p := range data.ByName {
		made.ByName[name] = newPart(p)
	}
	for _, g := range data.Groups {
		made.Groups = append(made.Groups, newGroup(g))
	}
	return made
}

func equal(got *echo.Complex, want *rpc.Complex) bool {
	if got.Action != want.Action || got.Msg != want.Msg ||
		len(got.ByName) != len(want.ByName) || len(got.Groups) != len(want.Groups) {
		return false
	}
	for name, p := range want.ByName {
		if found, ok := got.ByName[name]; !ok || !equalPart(found, p) {
			return false
		}
	}
	for i := range want.Groups {
		if !equalGroup(got.Groups[i], &want.Groups[i]) {
			return false
		}
	}
	return equalParts(got.Parts, want.Parts) && equalGroup(got.Flag, &want.Flag)
}

func equalPart(got *echo.Part, want rpc.Part) bool {
	return got.GetNumber() == want.Number && got.GetValue() == want.Value
}

func equalParts(got []*echo.Part, want []rpc.Part) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if !equalPart(got[i], want[i]) {
			return false
		}
	}
	return true
}

func equalGroup(got *echo.Group, want *rpc.Group) bool {
	return got.GetNumber() == want.Number && got.GetValue() == want.Value && equalParts(got.Parts, want.Parts)
}
