package main

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that the tests leave behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_PrintsWhatTheReadmeSays(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "order 1: 2 of TEA-250\nonly 5 of TEA-250 left\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
