package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// Views read what structs have, and forward what structs forward.
func TestViews_DoWhatStructsDo(t *testing.T) {
	for _, c := range codec.ViewCases() {
		if c.Operation != codec.ReadAll || strings.HasSuffix(c.Name, "m") {
			continue
		}
		t.Run(c.Set.Name, func(t *testing.T) {
			wires, err := codec.ViewWires(c.Set)
			if err != nil {
				t.Fatal(err)
			}
			readAll, forward, forwardCopy := readSmall, forwardSmall, copySmall
			if c.Set.Struct == "Complex" {
				readAll, forward, forwardCopy = readComplex, forwardComplex, copyComplex
			}
			for i, wire := range wires {
				if len(wire) != c.Set.Bytes {
					t.Errorf("message %d has %d bytes, want %d", i, len(wire), c.Set.Bytes)
				}
				s := c.Set.Build(i)
				if sum, err := readAll(wire); err != nil || sum != structReadAll(s) || sum == 0 {
					t.Errorf("message %d: the view has %d, %v; the struct %d", i, sum, err, structReadAll(s))
				}
				var out pieces
				one, err := forward(&out, wire)
				encoded := bytes.Join(out.list, nil)
				if err != nil || one != structReadOne(s) {
					t.Errorf("message %d: the view has %d, %v; the struct %d", i, one, err, structReadOne(s))
				}
				var copied []byte
				if same, err := forwardCopy(&copied, wire); err != nil || same != one || !bytes.Equal(copied, encoded) {
					t.Errorf("message %d: in one piece the view has %d, %v; in several %d", i, same, err, one)
				}
				structSet(s)
				decoded := empty(c.Set.Struct)()
				if err := thrift.Unmarshal(encoded, decoded); err != nil || !reflect.DeepEqual(decoded, s) {
					t.Errorf("message %d: what is forwarded is not the struct, %v", i, err)
				}
			}
		})
	}
}

func TestContestants_PlayEveryCase(t *testing.T) {
	for _, c := range codec.ViewCases() {
		if strings.HasSuffix(c.Name, "6m") {
			continue
		}
		for _, contestant := range all() {
			repeat, err := contestant.Repeat(c.Name)
			if err == nil {
				_, err = repeat.Times(2)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", contestant.Name, c.Name, err)
			}
		}
	}
}

// A budget: nothing is allocated to forward a message.
func TestForward_AllocatesNothing(t *testing.T) {
	wire, err := thrift.Marshal(&messages.Small{Trace: "trace", Items: make([]messages.SmallItem, 9)})
	if err != nil {
		t.Fatal(err)
	}
	var out pieces
	if n := testing.AllocsPerRun(100, func() { _, err = forwardSmall(&out, wire) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
	if n := testing.AllocsPerRun(100, func() { _, err = readSmall(wire) }); n != 0 || err != nil {
		t.Errorf("reading takes %v allocations, %v", n, err)
	}
}
