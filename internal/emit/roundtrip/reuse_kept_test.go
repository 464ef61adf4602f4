package roundtrip_test

import (
	"reflect"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// readBoth reads a message into a struct whose memory is reused, and into a new one.
func readBoth[T any, P interface {
	*T
	thrift.Struct
}](t *testing.T, message []byte, reused, fresh P, policy thrift.Strings) {
	t.Helper()
	if err := thrift.UnmarshalOwned(message, reused, thrift.UnmarshalConfig{Strings: policy, Reuse: true}); err != nil {
		t.Fatal(err)
	}
	if err := thrift.UnmarshalOwned(message, fresh, thrift.UnmarshalConfig{Strings: policy}); err != nil {
		t.Fatal(err)
	}
}

// TestReuse_KeepsUnknownFieldsOfThisMessageOnly has fields that the definition does not
// know in one message and not in the next, at each level; what was kept of a message
// before stays as it was.
func TestReuse_KeepsUnknownFieldsOfThisMessageOnly(t *testing.T) {
	for _, policy := range policies {
		reused := reuse.NewKeeper()
		var before thrift.Unknown
		var text string
		for seed := range uint64(200) {
			sent := newFilled(reused, seed).(*reuse.Keeper)
			if seed%3 == 2 {
				sent.UnknownFields = thrift.Unknown{}
			}
			fresh := reuse.NewKeeper()
			readBoth(t, marshal(t, sent), reused, fresh, policy)
			if !reused.Equal(fresh) || reused.UnknownFields != sent.UnknownFields {
				t.Fatalf("policy %d, message %d: read %v\nwant %v", policy, seed, reused, sent)
			}
			if got := string(marshal(t, &reuse.Keeper{UnknownFields: before})); seed > 0 && got != text {
				t.Fatalf("policy %d, message %d: what was kept before became %q, it was %q", policy, seed, got, text)
			}
			before, text = reused.UnknownFields, string(marshal(t, &reuse.Keeper{UnknownFields: reused.UnknownFields}))
		}
	}
}

// TestReuse_StructsAsKeysHaveTheirDefaults sends keys without some of their fields: they
// are what their constructor returns, and neither what an entry before them was, nor zero.
func TestReuse_StructsAsKeysHaveTheirDefaults(t *testing.T) {
	entry := func(key fields) fields {
		return func(m *message) {
			m.Field(thrift.Map, 1)
			m.b = m.w.BeginMap(m.b, 0, thrift.StructType, thrift.I32, 2)
			m.Struct(fields(func(m *message) { m.FieldI32(1, 1); m.FieldString(2, "a"); m.FieldI32(3, 9) }))
			m.b = m.w.I32(m.b, 1)
			m.Struct(key)
			m.b = m.w.I32(m.b, 2)
			m.EndMap()
		}
	}
	full := reuse.Corner{X: 1, Name: "a", Z: thrift.Some[int32](9)}
	reused := reuse.NewKeyed()
	for name, test := range map[string]struct {
		key  fields
		want reuse.Corner
	}{
		"nothing":      {func(*message) {}, reuse.Corner{X: 5, Name: "corner"}},
		"a number":     {func(m *message) { m.FieldI32(1, 2) }, reuse.Corner{X: 2, Name: "corner"}},
		"a name":       {func(m *message) { m.FieldString(2, "b") }, reuse.Corner{X: 5, Name: "b"}},
		"the optional": {func(m *message) { m.FieldI32(3, 7) }, reuse.Corner{X: 5, Name: "corner", Z: thrift.Some[int32](7)}},
	} {
		message := marshal(t, entry(test.key))
		for _, policy := range policies {
			fresh := reuse.NewKeyed()
			readBoth(t, message, reused, fresh, policy)
			want := map[reuse.Corner]int32{full: 1, test.want: 2}
			if !reflect.DeepEqual(reused.Numbers, want) || !reflect.DeepEqual(fresh.Numbers, want) {
				t.Errorf("%s: %v with memory that is reused, %v without, want %v", name, reused.Numbers, fresh.Numbers, want)
			}
		}
	}
}

// TestReuse_KeysOfAllKindsAreAsNew is TestReuse_IsAsANewStruct for structs as keys.
func TestReuse_KeysOfAllKindsAreAsNew(t *testing.T) {
	for _, policy := range policies {
		reused := reuse.NewKeyed()
		for seed := range uint64(200) {
			fresh := reuse.NewKeyed()
			readBoth(t, marshal(t, newFilled(reused, seed)), reused, fresh, policy)
			if !reused.Equal(fresh) {
				t.Fatalf("policy %d, message %d: read %v\nwant %v", policy, seed, reused, fresh)
			}
		}
	}
}
