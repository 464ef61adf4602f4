package main

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/eventloop"
)

// What a name promises is what is configured. Nothing else is: a limit switched
// off for the benchmark would not be what users get.
func TestVariants_AreWhatTheirNamesSay(t *testing.T) {
	want := map[string]struct {
		engine   eventloop.Engine
		dispatch eventloop.Dispatch
		offload  bool
	}{
		"fulmar":        {eventloop.EngineDefault, eventloop.DispatchDefault, false},
		"fulmar-inline": {eventloop.EngineDefault, eventloop.DispatchInline, true},
		"fulmar-spawn":  {eventloop.EngineDefault, eventloop.DispatchSpawn, false},
		"fulmar-std":    {eventloop.EngineStd, eventloop.DispatchDefault, false},
	}
	found := variants()
	for _, v := range found {
		w, known := want[v.name]
		if !known || v.config.Engine != w.engine || v.config.Dispatch != w.dispatch || v.offload != w.offload {
			t.Errorf("%s has engine %d, dispatch %d, offload %v; want %+v", v.name, v.config.Engine, v.config.Dispatch, v.offload, w)
		}
		if v.config.ReadBufferBytes != 0 || v.config.WriteStallTimeout != 0 || v.config.MaxConnections != 0 || v.config.Pollers != 0 {
			t.Errorf("%s changes limits: %+v", v.name, v.config)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d variants, want %d", len(found), len(want))
	}
}
