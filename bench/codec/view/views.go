package main

import (
	"math"

	"github.com/fulmar-rpc/fulmar/bench/codec"
	views "github.com/fulmar-rpc/fulmar/bench/gen/views/messages"
)

// pieces are a message that can be sent.
type pieces struct {
	list   [][]byte
	memory []byte
}

func forwardSmall(out *pieces, wire []byte) (int64, error) {
	var v views.SmallView
	if err := v.Load(wire); err != nil {
		return 0, err
	}
	read := int64(len(v.Trace()))
	v.SetTotal(codec.SetTotal)
	var err error
	out.list, out.memory, err = v.AppendPieces(out.list[:0], out.memory[:0])
	return read, err
}

func forwardComplex(out *pieces, wire []byte) (int64, error) {
	var v views.ComplexView
	if err := v.Load(wire); err != nil {
		return 0, err
	}
	read := int64(len(v.Action()))
	v.SetAction(codec.SetAction)
	var err error
	out.list, out.memory, err = v.AppendPieces(out.list[:0], out.memory[:0])
	return read, err
}

func copySmall(memory *[]byte, wire []byte) (int64, error) {
	var v views.SmallView
	if err := v.Load(wire); err != nil {
		return 0, err
	}
	read := int64(len(v.Trace()))
	v.SetTotal(codec.SetTotal)
	var err error
	*memory, err = v.AppendTo((*memory)[:0])
	return read, err
}

func copyComplex(memory *[]byte, wire []byte) (int64, error) {
	var v views.ComplexView
	if err := v.Load(wire); err != nil {
		return 0, err
	}
	read := int64(len(v.Action()))
	v.SetAction(codec.SetAction)
	var err error
	*memory, err = v.AppendTo((*memory)[:0])
	return read, err
}

func readOneOfSmall(wire []byte) (int64, error) {
	var v views.SmallView
	err := v.Load(wire)
	return int64(len(v.Trace())), err
}

func readOneOfComplex(wire []byte) (int64, error) {
	var v views.ComplexView
	err := v.Load(wire)
	return int64(len(v.Action())), err
}

func readSmall(wire []byte) (int64, error) {
	var v views.SmallView
	if err := v.Load(wire); err != nil {
		return 0, err
	}
	sum := int64(len(v.Trace())) + v.Total()
	for _, item := range v.Items().All() {
		sum += item.ID() + int64(len(item.Name())) + int64(item.Kind()) + int64(math.Float64bits(item.Score())) + int64(len(item.Note()))
		if item.Flag() {
			sum++
		}
		for _, label := range item.Labels().All() {
			sum += int64(len(label))
		}
		tag := item.Tag()
		sum += int64(len(tag.Key()) + len(tag.Val()))
		for _, id := range item.IDs().All() {
			sum += id
		}
	}
	return sum, nil
}

func readComplex(wire []byte) (int64, error) {
	var v views.ComplexView
	if err := v.Load(wire); err != nil {
		return 0, err
	}
	sum := int64(len(v.Action()) + len(v.Msg()))
	for name, part := range v.ByName().All() {
		sum += int64(len(name)) + part.Number() + int64(len(part.Value()))
	}
	for _, part := range v.Parts().All() {
		sum += part.Number() + int64(len(part.Value()))
	}
	for _, group := range v.Groups().All() {
		sum += readGroup(&group)
	}
	flag := v.Flag()
	return sum + readGroup(&flag), nil
}

func readGroup(group *views.GroupView) int64 {
	sum := group.Number() + int64(len(group.Value()))
	for _, part := range group.Parts().All() {
		sum += part.Number() + int64(len(part.Value()))
	}
	return sum
}
