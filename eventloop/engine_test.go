package eventloop

import (
	"fmt"
	"net"
	"runtime"
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
	best := "eventloop.stdEngine"
	if runtime.GOOS == "linux" {
		best = "*eventloop.epollEngine"
	}
	for selected, want := range map[Engine]string{EngineDefault: best, EngineStd: "eventloop.stdEngine"} {
		listener, err := newListener(socket, Config{Engine: selected}, false)
		if err != nil || fmt.Sprintf("%T", listener.engine) != want {
			t.Errorf("engine %d: %+v, %v, want %s", selected, listener, err, want)
		}
	}
	if listener, err := newListener(socket, Config{Engine: EngineEpoll}, false); (err == nil) != (runtime.GOOS == "linux") {
		t.Errorf("EngineEpoll on %s: %v, %v", runtime.GOOS, listener, err)
	}
	unknown := EngineEpoll + 1
	if listener, err := newListener(socket, Config{Engine: unknown}, false); listener != nil || err == nil || !strings.Contains(err.Error(), "Engine: unknown") {
		t.Errorf("engine %d: %v, %v", unknown, listener, err)
	}
	if err := (Config{Engine: unknown}).Validate(); err == nil {
		t.Errorf("Validate accepts engine %d, which does not exist", unknown)
	}
}
