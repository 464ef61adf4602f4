// Command view runs this project's contestants of suite view.
package main

import (
	"fmt"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	views "github.com/fulmar-rpc/fulmar/bench/gen/views/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

func main() {
	contestant.Main(all()...)
}

func all() []contestant.Contestant {
	return []contestant.Contestant{
		{Name: "fulmar-view", Repeat: repeat},
		structs().Contestant("fulmar-struct"),
	}
}

// repeat prepares a case for views. The message is the view's: it is not copied.
func repeat(name string) (contestant.Repeat, error) {
	c, err := codec.FindCase(name)
	if err != nil {
		return contestant.Repeat{}, err
	}
	if c.Operation == codec.Whole {
		return codec.RepeatWhole(whole()), nil
	}
	wires, err := codec.ViewWires(c.Set)
	if err != nil {
		return contestant.Repeat{}, err
	}
	var out pieces
	once := map[string]func(wire []byte) (int64, error){
		"Small/forward":        func(wire []byte) (int64, error) { return forwardSmall(&out, wire) },
		"Complex/forward":      func(wire []byte) (int64, error) { return forwardComplex(&out, wire) },
		"Small/forward-copy":   func(wire []byte) (int64, error) { return copySmall(&out.memory, wire) },
		"Complex/forward-copy": func(wire []byte) (int64, error) { return copyComplex(&out.memory, wire) },
		"Small/readone":        readOneOfSmall, "Complex/readone": readOneOfComplex,
		"Small/readall": readSmall, "Complex/readall": readComplex,
	}[c.Set.Struct+"/"+string(c.Operation)]
	if once == nil {
		return contestant.Repeat{}, fmt.Errorf("%s: there are no views for it", name)
	}
	return codec.RepeatView(c.Set, func(message int) (int64, error) { return once(wires[message]) }), nil
}

// whole builds a struct, as a value is built with views, and reads it by a view.
func whole() func() (int64, error) {
	var memory []byte
	return func() (int64, error) {
		made := messages.MyTest{Num: codec.MyTestNum, Ano: messages.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
		for i := range made.Nums {
			made.Nums[i] = int64(i)
		}
		encoded, err := thrift.Append(memory[:0], &made)
		if err != nil {
			return 0, err
		}
		memory = encoded
		var v views.MyTestView
		if err := v.Load(encoded); err != nil {
			return 0, err
		}
		ano := v.Ano()
		total := v.Num() + ano.Num()
		for _, number := range v.Nums().All() {
			total += number
		}
		return total, nil
	}
}
