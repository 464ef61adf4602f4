package main

import "testing"

func TestChosen(t *testing.T) {
	for expression, want := range map[string]int{"": len(scenarios()), "^S6$": 1, "^S6 slow": 1, "S11|S17": 2, "S5$": 0, "(": 0} {
		list, err := chosen(expression)
		if len(list) != want || (err != nil) != (want == 0) {
			t.Errorf("%q chooses %d scenarios, %v, want %d", expression, len(list), err, want)
		}
	}
}
