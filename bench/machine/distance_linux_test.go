package machine

import (
	"errors"
	"testing"
)

func TestDistance(t *testing.T) {
	one, other, err := Pair()
	if err != nil {
		t.Skip("there is nothing to measure: ", err)
	}
	distance, err := Distance(one, other)
	if err != nil || distance <= 0 || distance >= distanceMost {
		t.Errorf("processors %d and %d are %v apart, %v", one, other, distance, err)
	}
	if _, err := Distance(one, 1<<9); err == nil || errors.Is(err, ErrUnsupported) {
		t.Errorf("a processor that is not there: %v", err)
	}
}
