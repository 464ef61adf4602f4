package transport

import (
	"testing"
	"time"
)

// TestInbound_BeginsBeforeItIsComplete: when its first byte was seen is read from
// another clock than when the last one came.
func TestInbound_BeginsBeforeItIsComplete(t *testing.T) {
	c := &serverConn{server: &Server{config: ServerConfig{Observed: true}}}
	arrived := time.Now()
	for _, began := range []time.Time{{}, arrived.Add(-time.Second), arrived.Add(time.Second)} {
		stamps := c.newInbound(began, arrived, 1).Stamps()
		want := arrived
		if began.Before(arrived) && !began.IsZero() {
			want = began
		}
		if !stamps.FirstByte.Equal(want) || !stamps.Complete.Equal(arrived) {
			t.Errorf("began at %v, arrived at %v: %+v", began, arrived, stamps)
		}
	}
}
