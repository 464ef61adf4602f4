package assert_test

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/assert"
)

func TestThat_PanicsOnlyWhereEnabled(t *testing.T) {
	panicked := func(condition bool) (value any) {
		defer func() { value = recover() }()
		assert.That(condition, "the sum is even")
		return nil
	}
	if got := panicked(true); got != nil {
		t.Errorf("That(true) panicked: %v", got)
	}
	var want any
	if assert.Enabled {
		want = "assertion failed: the sum is even"
	}
	if got := panicked(false); got != want {
		t.Errorf("That(false): recovered %v, want %v", got, want)
	}
}

func TestThat_AllocatesNothing(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { assert.That(true, "always") }); got != 0 {
		t.Errorf("That allocates %v times", got)
	}
}
