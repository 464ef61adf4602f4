package main

import (
	"math"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// structs is the codec of structs, as contestant fulmar of suite codec has it.
func structs() codec.Codec[thrift.Struct] {
	return codec.Codec[thrift.Struct]{
		Empty:  empty,
		Encode: func(memory []byte, s thrift.Struct) ([]byte, error) { return thrift.Append(memory[:0], s) },
		Decode: func(wire []byte, s thrift.Struct) error { return thrift.Unmarshal(wire, s) },
		Build: func() thrift.Struct {
			made := &messages.MyTest{Num: codec.MyTestNum, Ano: messages.Ano{Num: codec.MyTestAno}, Nums: make([]int64, codec.MyTestNumbers)}
			for i := range made.Nums {
				made.Nums[i] = int64(i)
			}
			return made
		},
		Sum: func(s thrift.Struct) int64 {
			read := s.(*messages.MyTest)
			total := read.Num + read.Ano.Num
			for _, number := range read.Nums {
				total += number
			}
			return total
		},
		Fields: codec.Fields[thrift.Struct]{ReadOne: structReadOne, Set: structSet, ReadAll: structReadAll},
	}
}

func empty(structName string) func() thrift.Struct {
	switch structName {
	case "Small":
		return func() thrift.Struct { return new(messages.Small) }
	case "Complex":
		return func() thrift.Struct { return new(messages.Complex) }
	case "MyTest":
		return func() thrift.Struct { return new(messages.MyTest) }
	}
	return nil
}

func structReadOne(s thrift.Struct) int64 {
	switch v := s.(type) {
	case *messages.Small:
		return int64(len(v.Trace))
	case *messages.Complex:
		return int64(len(v.Action))
	}
	return 0
}

func structSet(s thrift.Struct) {
	switch v := s.(type) {
	case *messages.Small:
		v.Total.Set(codec.SetTotal)
	case *messages.Complex:
		v.Action = codec.SetAction
	}
}

func structReadAll(s thrift.Struct) int64 {
	switch v := s.(type) {
	case *messages.Small:
		return sumOfSmall(v)
	case *messages.Complex:
		return sumOfComplex(v)
	}
	return 0
}

func sumOfSmall(v *messages.Small) int64 {
	sum := int64(len(v.Trace)) + v.GetTotal()
	for i := range v.Items {
		item := &v.Items[i]
		sum += item.ID + int64(len(item.Name)) + int64(item.Kind) + int64(math.Float64bits(item.Score)) + int64(len(item.GetNote()))
		if item.Flag {
			sum++
		}
		for _, label := range item.Labels {
			sum += int64(len(label))
		}
		sum += int64(len(item.Tag.Key) + len(item.Tag.Val))
		for _, id := range item.IDs {
			sum += id
		}
	}
	return sum
}

func sumOfComplex(v *messages.Complex) int64 {
	sum := int64(len(v.Action) + len(v.Msg))
	for name, part := range v.ByName {
		sum += int64(len(name)) + sumOfPart(part)
	}
	for i := range v.Parts {
		sum += sumOfPart(&v.Parts[i])
	}
	for i := range v.Groups {
		sum += sumOfGroup(&v.Groups[i])
	}
	return sum + sumOfGroup(&v.Flag)
}

func sumOfPart(part *messages.Part) int64 { return part.GetNumber() + int64(len(part.GetValue())) }

func sumOfGroup(group *messages.Group) int64 {
	sum := group.GetNumber() + int64(len(group.GetValue()))
	for i := range group.Parts {
		sum += sumOfPart(&group.Parts[i])
	}
	return sum
}
