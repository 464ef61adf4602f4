package eventloop_test

import (
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// TestReader_Arrived: it is between the write of the last bytes and the call of the
// handler, the same for all requests that came together, later for those that came
// later, and does not move while handlers wait.
func TestReader_Arrived(t *testing.T) {
	onConcurrentEngines(t, func(t *testing.T, config eventloop.Config) {
		type sight struct{ arrived, called time.Time }
		seen := make(chan sight, 10)
		goOn := make(chan struct{})
		s := serve(t, config, func(conn *eventloop.Conn) error {
			if _, err := conn.Reader().Until('\n'); err != nil {
				return err
			}
			seen <- sight{conn.Reader().Arrived(), time.Now()}
			<-goOn
			return nil
		})
		conn, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var last time.Time
		for range 3 {
			wrote := time.Now()
			if _, err := conn.Write([]byte("a\nb\n")); err != nil {
				t.Fatal(err)
			}
			first := receive(t, seen, "the first request")
			if first.arrived.Before(wrote) || first.called.Before(first.arrived) || !last.Before(first.arrived) {
				t.Errorf("written at %v, arrived at %v (the ones before at %v), handled at %v", wrote, first.arrived, last, first.called)
			}
			goOn <- struct{}{}
			second := receive(t, seen, "the second request")
			if !second.arrived.Equal(first.arrived) {
				t.Errorf("what came together arrived at %v and at %v", first.arrived, second.arrived)
			}
			goOn <- struct{}{}
			last = first.arrived
		}
		if !eventloop.NewConn(conn, eventloop.Config{}).Reader().Arrived().IsZero() {
			t.Error("a dialled connection has a time of arrival")
		}
	})
}
