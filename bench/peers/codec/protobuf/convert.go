//go:build linux

package main

import (
	"fmt"

	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	messagespb "github.com/fulmar-rpc/fulmar/bench/peers/gen/protobuf/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// convert makes a message of the suite's data.
func convert(data thrift.Struct) (message, error) {
	switch d := data.(type) {
	case *messages.Complex:
		return newComplex(d), nil
	case *messages.Small:
		return newSmall(d), nil
	case *messages.Mixed:
		return newMixed(d), nil
	case *messages.Tiny:
		return &messagespb.Tiny{Name: d.Name, Birthday: d.Birthday, Phone: d.Phone, Siblings: d.Siblings, Spouse: d.Spouse, Money: d.Money}, nil
	case *messages.Echo:
		return &messagespb.Echo{Action: d.Action, Msg: d.Msg}, nil
	case *messages.Int64List:
		return &messagespb.Int64List{Values: d.Values}, nil
	case *messages.Int32List:
		return &messagespb.Int32List{Values: d.Values}, nil
	}
	return nil, fmt.Errorf("no message for %T", data)
}

// pointer returns how Protobuf's structs have an optional field.
func pointer[T any](optional thrift.Opt[T]) *T {
	if value, set := optional.Get(); set {
		return &value
	}
	return nil
}

func newComplex(d *messages.Complex) *messagespb.Complex {
	made := &messagespb.Complex{
		Action: d.Action, Msg: d.Msg, ByName: map[string]*messagespb.Part{},
		Parts: newParts(d.Parts), Flag: newGroup(&d.Flag),
	}
	for name, part := range d.ByName {
		made.ByName[name] = newPart(part)
	}
	for i := range d.Groups {
		made.Groups = append(made.Groups, newGroup(&d.Groups[i]))
	}
	return made
}

func newPart(d *messages.Part) *messagespb.Part {
	return &messagespb.Part{Number: pointer(d.Number), Value: pointer(d.Value)}
}

func newParts(parts []messages.Part) []*messagespb.Part {
	made := make([]*messagespb.Part, len(parts))
	for i := range parts {
		made[i] = newPart(&parts[i])
	}
	return made
}

func newGroup(d *messages.Group) *messagespb.Group {
	return &messagespb.Group{Number: pointer(d.Number), Value: pointer(d.Value), Parts: newParts(d.Parts)}
}

func newTag(d messages.Tag) *messagespb.Tag { return &messagespb.Tag{Key: d.Key, Val: d.Val} }

func newSmall(d *messages.Small) *messagespb.Small {
	made := &messagespb.Small{Trace: d.Trace, Total: pointer(d.Total)}
	for _, item := range d.Items {
		made.Items = append(made.Items, &messagespb.SmallItem{
			Id: item.ID, Name: item.Name, Kind: item.Kind, Score: item.Score, Flag: item.Flag,
			Labels: item.Labels, Tag: newTag(item.Tag), Ids: item.IDs, Note: pointer(item.Note),
		})
	}
	return made
}

func newMixed(d *messages.Mixed) *messagespb.Mixed {
	made := &messagespb.Mixed{Trace: d.Trace, Index: map[string]*messagespb.Item{}, Total: pointer(d.Total)}
	for i := range d.Items {
		made.Items = append(made.Items, newItem(&d.Items[i]))
	}
	for key, item := range d.Index {
		made.Index[key] = newItem(item)
	}
	return made
}

func newItem(d *messages.Item) *messagespb.Item {
	return &messagespb.Item{
		Id: d.ID, Name: d.Name, Kind: d.Kind, Score: d.Score, Flag: d.Flag,
		Labels: d.Labels, Attrs: d.Attrs, Tag: newTag(d.Tag), Ids: d.IDs, Note: pointer(d.Note),
	}
}
