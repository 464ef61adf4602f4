//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/papernet"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestContestants_AreThoseOfTheSuite(t *testing.T) {
	var got []string
	for _, c := range contestants() {
		got = append(got, c.Name)
	}
	want := slices.Sorted(slices.Values(papernet.Suite().Programs[0].Contestants))
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("contestants %q, want %q", got, want)
	}
}

// A contestant does what its cases ask for, and refuses all others: nothing is
// measured under a wrong name.
func TestContestants_PlayTheirCasesOnly(t *testing.T) {
	for _, c := range papernet.Suite().Cases {
		members := map[string]bool{}
		for _, pair := range c.Pairs {
			members[pair.Ours], members[pair.Peer] = true, true
		}
		for _, one := range contestants() {
			if one.Repeat == nil {
				continue
			}
			repeat, err := one.Repeat(c.Name)
			if plays := err == nil; plays != (members[one.Name] && c.Repeats) {
				t.Errorf("%s repeats something for %s: %v (%v)", one.Name, c.Name, plays, err)
			}
			if err == nil && repeat.Close != nil {
				if err := repeat.Close(); err != nil {
					t.Errorf("%s, %s: %v", one.Name, c.Name, err)
				}
			}
		}
	}
	for _, one := range contestants() {
		if one.Serve == nil {
			continue
		}
		if err := one.Serve(t.Context(), nil, contestant.Played{Case: "other"}); err == nil || !strings.Contains(err.Error(), "no server for case") {
			t.Errorf("%s serves a case that does not exist: %v", one.Name, err)
		}
	}
}

// The variants of one comparison differ in one thing each.
func TestLoops_DifferInOneThing(t *testing.T) {
	want := []loop{
		{"msec=-1", false, false, false}, {"msec-switch", true, false, false},
		{"msec-switch-gosched", true, true, false}, {"msec-switch-gosched-raw", true, true, true},
	}
	if got := loops(); !slices.Equal(got, want) {
		t.Errorf("loops %+v, want %+v", got, want)
	}
}
