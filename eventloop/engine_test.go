package eventloop

import (
	"net"
	"strings"
	"testing"
)

// TestListener_UsesTheEngineOfItsConfig is a white-box test: which engine serves
// cannot be seen from outside, and as long as there is only one, a listener that
// never asks would do the same.
func TestListener_UsesTheEngineOfItsConfig(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, selected := range []Engine{EngineDefault, EngineStd} {
		want, err := engineOf(selected)
		if err != nil {
			t.Fatal(err)
		}
		listener, err := newListener(socket, Config{Engine: selected})
		if err != nil || listener.engine != want {
			t.Errorf("engine %d: %+v, %v, want %+v", selected, listener, err, want)
		}
	}
	unknown := EngineStd + 1
	if listener, err := newListener(socket, Config{Engine: unknown}); listener != nil || err == nil || !strings.Contains(err.Error(), "Engine: unknown") {
		t.Errorf("engine %d: %v, %v", unknown, listener, err)
	}
	if err := (Config{Engine: unknown}).Validate(); err == nil {
		t.Errorf("Validate accepts engine %d, which does not exist", unknown)
	}
}
