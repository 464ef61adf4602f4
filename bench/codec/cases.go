// Package codec is the suites codec, paper-codec and view: values of generated types
// become bytes, and bytes become values, without any calls.
//
// The data is the same for all contestants. A contestant supplies what its
// library does with one value; the loops around that are here.
package codec

import (
	"fmt"
	"slices"
)

// Operation is what a case does with a message.
type Operation string

// The operations.
const (
	// Encode writes a value into memory that is there from the time before.
	Encode Operation = "encode"
	// Decode makes a new value of bytes.
	Decode Operation = "decode"
	// EncodeNew writes a value into new memory.
	EncodeNew Operation = "encode-new"
	// Whole builds a value of MyTest, encodes it, decodes that, and reads
	// everything.
	Whole Operation = "whole"
)

// Case is one measured situation.
type Case struct {
	Name      string
	Set       DataSet
	Operation Operation
}

// MyTest is the case of the operation Whole, and the name of its data set: the
// struct MyTest with a number, a struct with a number, and a list of
// MyTestNumbers numbers.
const (
	MyTest        = "mytest-1m"
	MyTestNumbers = 128 << 10
)

// myTestBytes is how long MyTest is in Thrift Binary.
const myTestBytes = 11 + 3 + 12 + 8 + 8*MyTestNumbers + 1

// What is in MyTest: element i of the list is i.
const (
	MyTestNum = 1 << 40
	MyTestAno = 1 << 41
	// MyTestSum is that of all its numbers.
	MyTestSum = MyTestNum + MyTestAno + MyTestNumbers*(MyTestNumbers-1)/2
)

// Cases returns the cases of suite codec.
func Cases() []Case {
	var cases []Case
	for _, set := range DataSets() {
		for _, operation := range []Operation{Encode, Decode} {
			cases = append(cases, Case{Name: set.Name + "-" + string(operation), Set: set, Operation: operation})
		}
	}
	return append(cases, Case{Name: MyTest, Set: myTest(), Operation: Whole})
}

func myTest() DataSet {
	return DataSet{Name: MyTest, Struct: "MyTest", Bytes: myTestBytes, Messages: 1}
}

// FindCase returns the case of that name, of suite codec, paper-codec or view.
func FindCase(name string) (Case, error) {
	for _, c := range slices.Concat(Cases(), PaperCases(), ViewCases()) {
		if c.Name == name {
			return c, nil
		}
	}
	return Case{}, fmt.Errorf("suites codec, paper-codec and view: no case %.40q", name)
}
