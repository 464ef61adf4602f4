package codec

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/fulmar-rpc/fulmar/bench/contestant"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// Codec is what a library does with values, which are of type V for it.
type Codec[V any] struct {
	// Empty returns what makes values of a struct of codec.thrift before they are
	// decoded, or nil if the codec has none.
	Empty func(structName string) func() V
	// Encode writes v over memory, whose content does not matter, or over other
	// memory if that is too small. It returns what was written, which is valid
	// until the next call.
	Encode func(memory []byte, v V) ([]byte, error)
	// Decode fills an empty value.
	Decode func(wire []byte, v V) error
	// Convert makes a value of a message of DataSet. It is nil for codecs of
	// Thrift Binary: they decode the message, so that their values lie in memory
	// as their users' do.
	Convert func(message thrift.Struct) (V, error)
	// Build makes a value of MyTest, and Sum adds all of its numbers. Both are nil
	// for codecs that are not in that case.
	Build func() V
	Sum   func(v V) int64
	// Fields are for suite view, and empty for codecs that are not in it.
	Fields Fields[V]
}

// Contestant is a codec as Main takes it. modules are those whose versions
// belong to a result.
func (c Codec[V]) Contestant(name string, modules ...string) contestant.Contestant {
	return contestant.Contestant{Name: name, Modules: modules, Repeat: c.Repeat}
}

// Repeat prepares what a case repeats.
func (c Codec[V]) Repeat(name string) (contestant.Repeat, error) {
	found, err := FindCase(name)
	if err != nil {
		return contestant.Repeat{}, err
	}
	empty := c.Empty(found.Set.Struct)
	if empty == nil || found.Operation == Whole && c.Build == nil {
		return contestant.Repeat{}, fmt.Errorf("%s: it has no values of %s", name, found.Set.Struct)
	}
	if found.Operation == Whole {
		return RepeatWhole(c.whole(empty)), nil
	}
	values, wires, err := c.Prepare(found.Set)
	if err != nil {
		return contestant.Repeat{}, err
	}
	switch found.Operation {
	case Encode:
		return repeat(found.Set, c.encode(values)), nil
	case EncodeNew:
		return repeat(found.Set, c.encodeNew(values)), nil
	}
	if once := c.viewOperation(found.Operation, empty, wires); once != nil {
		return RepeatView(found.Set, once), nil
	}
	if found.Operation != Decode {
		return contestant.Repeat{}, fmt.Errorf("%s: it does not read fields", name)
	}
	return repeat(found.Set, c.decode(empty, wires)), nil
}

func (c Codec[V]) encodeNew(values []V) func(message int) error {
	return func(message int) error {
		_, err := c.Encode(nil, values[message])
		return err
	}
}

func (c Codec[V]) encode(values []V) func(message int) error {
	var memory []byte
	return func(message int) error {
		encoded, err := c.Encode(memory, values[message])
		memory = encoded
		return err
	}
}

func (c Codec[V]) decode(empty func() V, wires [][]byte) func(message int) error {
	return func(message int) error { return c.Decode(wires[message], empty()) }
}

func (c Codec[V]) whole(empty func() V) func() (int64, error) {
	var memory []byte
	return func() (int64, error) {
		encoded, err := c.Encode(memory, c.Build())
		if err != nil {
			return 0, err
		}
		memory = encoded
		decoded := empty()
		if err := c.Decode(encoded, decoded); err != nil {
			return 0, err
		}
		return c.Sum(decoded), nil
	}
}

// Prepare returns the messages of a set, as values and as what the codec decodes.
// All codecs of Thrift Binary decode the same bytes.
func (c Codec[V]) Prepare(set DataSet) (values []V, wires [][]byte, err error) {
	for i := range set.Messages {
		value, wire, err := c.prepare(set, set.Build(i))
		if err != nil {
			return nil, nil, fmt.Errorf("%s, message %d: %w", set.Name, i, err)
		}
		values, wires = append(values, value), append(wires, wire)
	}
	return values, wires, nil
}

func (c Codec[V]) prepare(set DataSet, message thrift.Struct) (value V, wire []byte, err error) {
	if c.Convert != nil {
		if value, err = c.Convert(message); err != nil {
			return value, nil, err
		}
		encoded, err := c.Encode(nil, value)
		return value, slices.Clone(encoded), err
	}
	if wire, err = thrift.Marshal(message); err != nil {
		return value, nil, err
	}
	value = c.Empty(set.Struct)()
	if err := c.Decode(wire, value); err != nil {
		return value, nil, err
	}
	// A codec that drops something would be measured as a fast one.
	encoded, err := c.Encode(nil, value)
	if err == nil && len(encoded) != len(wire) {
		err = fmt.Errorf("%d bytes became %d bytes", len(wire), len(encoded))
	}
	return value, wire, err
}

// repeat plays the messages of a set in turn.
func repeat(set DataSet, once func(message int) error) contestant.Repeat {
	next := 0
	collect()
	return contestant.Repeat{Bytes: int64(set.Bytes), Times: func(n int) (time.Duration, error) {
		begun := time.Now()
		for range n {
			if err := once(next); err != nil {
				return 0, err
			}
			if next++; next == set.Messages {
				next = 0
			}
		}
		return time.Since(begun), nil
	}}
}

// RepeatWhole is for contestants without values apart from their bytes: once does
// what Whole does, and returns the sum of all numbers that it has read.
func RepeatWhole(once func() (int64, error)) contestant.Repeat {
	collect()
	return contestant.Repeat{Bytes: myTestBytes, Times: func(n int) (time.Duration, error) {
		begun := time.Now()
		for range n {
			sum, err := once()
			if err != nil {
				return 0, err
			}
			if sum != MyTestSum {
				return 0, fmt.Errorf("%s: the sum of what was read is %d, want %d", MyTest, sum, int64(MyTestSum))
			}
		}
		return time.Since(begun), nil
	}}
}

// collect lets a case begin with a heap of what it needs, not of what was needed
// to prepare it.
func collect() { runtime.GC() }
