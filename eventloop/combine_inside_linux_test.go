package eventloop

import "testing"

// TestCombined_EndsOnce: somebody waited for the turn to write while another one
// wrote the last of what was left, for which the connection was to close.
func TestCombined_EndsOnce(t *testing.T) {
	l, _ := serveInside(t, Config{}, func(*Conn) error { return nil })
	c := newCombined(&Conn{listener: l, config: &l.config})
	closed := 0
	c.begin()
	if n, ok := c.leave([][]byte{[]byte("left")}); n != 4 || !ok {
		t.Fatalf("leave = %d, %v", n, ok)
	}
	ended, ok := c.closeAfter(func() { closed++ })
	if !ok {
		t.Fatal("there is nothing to wait for")
	}
	c.written(c.take())
	if !c.end() {
		t.Error("something is left")
	}
	<-ended
	c.begin()
	if c.fail() {
		t.Error("something was left")
	}
	if closed != 1 {
		t.Errorf("the connection was closed %d times", closed)
	}
}
