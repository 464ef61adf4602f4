package codec

import (
	"fmt"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/bench/harness"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// The operations of suite view.
const (
	// Forward decodes a message, reads a field, sets one, and encodes it again.
	Forward Operation = "forward"
	// ForwardCopy is Forward with the message in one piece of memory, which is what structs
	// do anyway.
	ForwardCopy Operation = "forward-copy"
	// ReadOne decodes a message and reads a field.
	ReadOne Operation = "readone"
	// ReadAll decodes a message and adds up all that is in it.
	ReadAll Operation = "readall"
)

// The contestants of suite view that are no others in suite codec.
const (
	fulmarView   = "fulmar-view"
	fulmarStruct = "fulmar-struct"
)

// What Forward sets: a number in Small, a text in Complex.
const (
	SetTotal  = 1 << 42
	SetAction = "changed"
)

// viewSets are the messages of suite view: structs of short fields, but for the one of
// Kitex's own benchmark.
func viewSets() []DataSet {
	return []DataSet{
		small("1k", 1_030, manyMessages, 6),
		small("4k", 3_991, manyMessages, 24),
		{Name: "11k", Struct: "Complex", Bytes: 11_429, Messages: manyMessages, build: source.complex},
		small("32k", 32_614, manyMessages, 198),
		small("1m", 1_048_237, 1, 6_372),
		small("6m", 6_004_293, 1, 36_500),
	}
}

// ViewCases returns the cases of suite view without calls.
func ViewCases() []Case {
	var cases []Case
	for _, operation := range []Operation{Forward, ForwardCopy, ReadAll, ReadOne} {
		for _, set := range viewSets() {
			cases = append(cases, Case{Name: string(operation) + "-" + set.Name, Set: set, Operation: operation})
		}
	}
	return append(cases, Case{Name: MyTest, Set: myTest(), Operation: Whole})
}

// ViewOperations describes the cases of suite view without calls to the runner.
func ViewOperations() []harness.Case {
	var cases []harness.Case
	for _, c := range ViewCases() {
		played := harness.Case{Name: c.Name, Repeats: true, Pairs: harness.Against(fulmarView, fulmarStruct, kitex)}
		switch c.Name {
		case MyTest:
			played.Quick = harness.Against(fulmarView, capnp)
			played.Pairs = append(played.Pairs, played.Quick...)
		case "forward-1k", "forward-11k", "forward-6m":
			played.Quick = harness.Against(fulmarView, kitex)
		}
		cases = append(cases, played)
	}
	return cases
}

// Fields is what a contestant of suite view does with values that were decoded.
type Fields[V any] struct {
	// ReadOne returns the length of the first text of a Small or Complex.
	ReadOne func(v V) int64
	// Set sets SetTotal or SetAction.
	Set func(v V)
	// ReadAll returns the sum of all numbers, lengths of texts, bits of doubles, and
	// bools that are true.
	ReadAll func(v V) int64
}

// viewOperation returns an operation of suite view; nil if it is of another suite.
func (c Codec[V]) viewOperation(operation Operation, empty func() V, wires [][]byte) func(message int) (int64, error) {
	if c.Fields.ReadOne == nil {
		return nil
	}
	decoded := func(message int, use func(v V) int64) (int64, error) {
		v := empty()
		if err := c.Decode(wires[message], v); err != nil {
			return 0, err
		}
		return use(v), nil
	}
	switch operation {
	case ReadOne:
		return func(message int) (int64, error) { return decoded(message, c.Fields.ReadOne) }
	case ReadAll:
		return func(message int) (int64, error) { return decoded(message, c.Fields.ReadAll) }
	case Forward, ForwardCopy:
		var memory []byte
		return func(message int) (int64, error) {
			v := empty()
			if err := c.Decode(wires[message], v); err != nil {
				return 0, err
			}
			read := c.Fields.ReadOne(v)
			c.Fields.Set(v)
			encoded, err := c.Encode(memory, v)
			memory = encoded
			return read, err
		}
	}
	return nil
}

// ViewWires returns the messages of a set as bytes.
func ViewWires(set DataSet) ([][]byte, error) {
	var wires [][]byte
	for i := range set.Messages {
		wire, err := thrift.Marshal(set.Build(i))
		if err != nil {
			return nil, err
		}
		wires = append(wires, wire)
	}
	return wires, nil
}

// RepeatView repeats once, which returns what was read of a message, for all messages of a
// set. What is read the first time has to be read always, and not be 0.
func RepeatView(set DataSet, once func(message int) (int64, error)) contestant.Repeat {
	read := make([]int64, set.Messages)
	return repeat(set, func(message int) error {
		sum, err := once(message)
		if err != nil {
			return err
		}
		if read[message] == 0 {
			read[message] = sum
		}
		if sum == 0 || sum != read[message] {
			return fmt.Errorf("message %d: %d was read, and before %d", message, sum, read[message])
		}
		return nil
	})
}
