package fulmar_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/assert"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
)

// TestRaw_IsSentFromWhereItIs if it is long, and copied if it may be lent.
func TestRaw_IsSentFromWhereItIs(t *testing.T) {
	codec := rawMethod(t, "S", "m").Codec
	for _, length := range []int{1, 1_000, limits.LinkedStringBytes - 1, limits.LinkedStringBytes, 1 << 20} {
		raw := fulmar.Raw(make([]byte, length))
		out := linkbuf.New(linkbuf.NewPool())
		copy(out.Reserve(8), "the head")
		if err := codec.AppendBody(out, &raw, limits.DefaultMessage()); err != nil {
			t.Fatal(err)
		}
		pieces := out.Slices(nil)
		last := pieces[len(pieces)-1]
		if linked := len(last) == length && &last[0] == &raw[0]; linked != (length >= limits.LinkedStringBytes) {
			t.Errorf("%d bytes: sent from where they are: %v", length, linked)
		}
		if whole := bytes.Join(pieces, nil); len(whole) != 8+length {
			t.Errorf("%d bytes became %d", length, len(whole)-8)
		}
		out.Release()
		var refers, copied fulmar.Raw
		for _, test := range []struct {
			into     *fulmar.Raw
			mayRefer bool
		}{{&refers, true}, {&copied, false}} {
			if refers, err := codec.ReadBody(raw, test.into, limits.DefaultMessage(), test.mayRefer); refers != test.mayRefer || err != nil {
				t.Errorf("%d bytes, may refer %v: refers %v, %v", length, test.mayRefer, refers, err)
			}
		}
		if &refers[0] != &raw[0] || &copied[0] == &raw[0] || len(copied) != length {
			t.Errorf("%d bytes: ReadBody copied what it might keep, or kept what it must copy", length)
		}
	}
}

// TestUnknown_WhatIsKeptTooLongChanges: bytes that are lent do, long ones are the
// handler's.
func TestUnknown_WhatIsKeptTooLongChanges(t *testing.T) {
	if !assert.Enabled {
		t.Skip("needs the invariants tag or the race detector, whose builds overwrite memory that was given back")
	}
	eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
		for _, test := range []struct {
			length  int
			changes bool
		}{{10, true}, {10_000, true}, {limits.LinkedStringBytes, false}, {200_000, false}} {
			var kept fulmar.Raw
			server := unknown(t, func(_ context.Context, request fulmar.Raw) (fulmar.Raw, error) {
				kept = request
				return fulmar.Raw{0}, nil
			})
			client := dialAny(t, fulmar.ClientConfig{Target: server.address, Protocol: protocol})
			request, reply := textStruct(test.length), fulmar.Raw(nil)
			if err := client.Call(t.Context(), rawMethod(t, "S", "m"), &request, &reply); err != nil {
				t.Fatal(err)
			}
			// So that the call has ended.
			if err := errors.Join(client.Close(), server.stop()); err != nil {
				t.Fatal(err)
			}
			if changed := !bytes.Equal(kept, request); changed != test.changes {
				t.Errorf("%d bytes: changed %v, want %v", test.length, changed, test.changes)
			}
		}
	})
}

// TestForward_TakesFewCopies compares calls through a proxy with calls without: what
// it adds is the bytes of the request and those of the reply once each, where they
// must outlive the connection that they came from, and room for pools that the
// garbage collector has emptied.
func TestForward_TakesFewCopies(t *testing.T) {
	if assert.Enabled {
		t.Skip("builds with checks allocate more")
	}
	for _, protocol := range []fulmar.Protocol{fulmar.Framed, fulmar.TTHeader} {
		for _, test := range []struct {
			length      int
			bytes, objs float64
		}{
			{1 << 10, 5 << 10, 45},
			// The two bodies, what the connections read them into, and room.
			{1 << 20, 7 << 20, 90},
		} {
			t.Run(fmt.Sprint(protocol, test.length), func(t *testing.T) {
				reply := textStruct(test.length)
				back := unknown(t, func(context.Context, fulmar.Raw) (fulmar.Raw, error) { return reply, nil })
				front := unknown(t, fulmar.Forward(dialAny(t, fulmar.ClientConfig{Target: back.address, Protocol: protocol})))
				through, throughObjects := perCall(t, front.address, protocol, test.length)
				direct, directObjects := perCall(t, back.address, protocol, test.length)
				t.Logf("a call through the proxy allocates %.0f bytes in %.1f pieces, one without %.0f in %.1f", through, throughObjects, direct, directObjects)
				if added := through - direct; added > test.bytes {
					t.Errorf("the proxy adds %.0f bytes, want at most %.0f", added, test.bytes)
				}
				if added := throughObjects - directObjects; added > test.objs {
					t.Errorf("the proxy adds %.1f allocations, want at most %.0f", added, test.objs)
				}
			})
		}
	}
}

// perCall returns what calls with a body of length bytes allocate, everywhere.
func perCall(t *testing.T, address string, protocol fulmar.Protocol, length int) (bytes, objects float64) {
	t.Helper()
	client := dialAny(t, fulmar.ClientConfig{Target: address, Protocol: protocol})
	method, request := rawMethod(t, "S", "m"), textStruct(length)
	call := func() {
		var reply fulmar.Raw
		if err := client.Call(context.Background(), method, &request, &reply); err != nil || len(reply) != len(request) {
			t.Errorf("%d bytes came back, %v", len(reply), err)
		}
	}
	const warm, calls = 20, 100
	for range warm {
		call()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / calls, float64(after.Mallocs-before.Mallocs) / calls
}
