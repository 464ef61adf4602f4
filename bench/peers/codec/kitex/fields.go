//go:build linux

package main

import (
	"math"

	"github.com/cloudwego/gopkg/protocol/thrift"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	"github.com/fulmar-rpc/fulmar/bench/peers/gen/kitex/messages"
)

// fields are for suite view.
func fields() codec.Fields[thrift.FastCodec] {
	return codec.Fields[thrift.FastCodec]{ReadOne: readOne, Set: set, ReadAll: readAll}
}

func readOne(s thrift.FastCodec) int64 {
	switch v := s.(type) {
	case *messages.Small:
		return int64(len(v.Trace))
	case *messages.Complex:
		return int64(len(v.Action))
	}
	return 0
}

func set(s thrift.FastCodec) {
	switch v := s.(type) {
	case *messages.Small:
		total := int64(codec.SetTotal)
		v.SetTotal(&total)
	case *messages.Complex:
		v.SetAction(codec.SetAction)
	}
}

func readAll(s thrift.FastCodec) int64 {
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
	for _, item := range v.Items {
		sum += item.Id + int64(len(item.Name)) + int64(item.Kind) + int64(math.Float64bits(item.Score)) + int64(len(item.GetNote()))
		if item.Flag {
			sum++
		}
		for _, label := range item.Labels {
			sum += int64(len(label))
		}
		sum += int64(len(item.Tag.Key) + len(item.Tag.Val))
		for _, id := range item.Ids {
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
	for _, part := range v.Parts {
		sum += sumOfPart(part)
	}
	for _, group := range v.Groups {
		sum += sumOfGroup(group)
	}
	return sum + sumOfGroup(v.Flag)
}

func sumOfPart(part *messages.Part) int64 { return part.GetNumber() + int64(len(part.GetValue())) }

func sumOfGroup(group *messages.Group) int64 {
	sum := group.GetNumber() + int64(len(group.GetValue()))
	for _, part := range group.Parts {
		sum += sumOfPart(part)
	}
	return sum
}
