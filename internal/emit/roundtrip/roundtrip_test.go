package roundtrip_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/bounds/golden/bounds"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/enumtext/golden/enumtext"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/fieldtypes/golden/fieldtypes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/hostile/golden/hostile"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/ids/golden/ids"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit"
	deepthrift "github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/deep/thrift"
	inheritthrift "github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/thrift"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/inherit/golden/inherit/value"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/names/golden/names"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested"
	nestedcommon "github.com/fulmar-rpc/fulmar/internal/emit/testdata/nested/golden/nested/common"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/orders/golden/orders"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/recursion/golden/recursion"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/retention/golden/retention"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/reuse/golden/reuse/other"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/sets/golden/sets"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/shapes/golden/shapes"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/streams/golden/streams"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/unknown/golden/unknown/newer"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/values/golden/values"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/viewmethods/golden/viewmethods/parcel"
	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	viewsother "github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views/other"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// declared are all declared structs of the golden files, and some arguments and
// results: those are printed by the same code.
var declared = []thrift.Struct{
	bounds.NewAround(), bounds.NewLarge(), bounds.NewLeaf(), bounds.NewLine(), bounds.NewNested(), bounds.NewPreset(), bounds.NewPresets(), bounds.NewSwitch(), bounds.NewTexts(),
	enumtext.NewPaint(),
	fieldtypes.NewBytes(), fieldtypes.NewContainer(), fieldtypes.NewContent(), fieldtypes.NewDigest(), fieldtypes.NewDefaults(), fieldtypes.NewEither(), fieldtypes.NewOptional(), fieldtypes.NewPlain(),
	fieldtypes.NewPoint(),
	hostile.NewTarget(), new(hostile.CommandsRunArgs), new(hostile.CommandsRunResult),
	ids.NewExtremes(), ids.NewEither(), ids.NewRefused(), new(ids.NegativeSwapArgs), new(ids.NegativeSwapResult),
	inherit.NewMixed(), new(inherit.ChildCombineArgs), new(inherit.ChildCombineResult),
	deepthrift.NewDeep(), inheritthrift.NewCommon(), inheritthrift.NewGone(), inheritthrift.NewWrapped(),
	value.NewInner(), value.NewKey(), value.NewValue(),
	names.NewError(), names.NewFailed(), names.NewGiven(), names.NewHTTPServer(), names.NewNewUser(),
	names.NewOrdersPlaceArgs(), names.NewOrdersServer(), names.NewThrift(), names.NewThrift2(), names.NewUser_(),
	names.NewUser__(), names.NewWriteThrift(),
	nestedcommon.NewBase(), nestedcommon.NewKeyed(), nested.NewAliased(), nested.NewCause(), nested.NewChain(), nested.NewEither(),
	nested.NewFailed(), nested.NewHolder(), nested.NewLeft(), nested.NewPoint(), nested.NewRequest(), nested.NewRight(),
	nested.NewSeen(), nested.NewSize(), nested.NewWrapped(),
	orders.NewForbidden(), orders.NewItem(), orders.NewOrder(), orders.NewOutOfStock(), orders.NewPlaceRequest(),
	new(orders.OrdersPlaceArgs), new(orders.OrdersPlaceResult),
	recursion.NewA(), recursion.NewB(), recursion.NewC(), recursion.NewCaused(), recursion.NewExpression(),
	recursion.NewInner(), recursion.NewKeyed(), recursion.NewLeaf(), recursion.NewNode(), recursion.NewOuter(),
	recursion.NewSum(), recursion.NewTree(),
	retention.NewEither(), retention.NewInner(), retention.NewKept(), new(retention.CachePutArgs),
	other.NewPlace(), reuse.NewBranch(), reuse.NewCorner(), reuse.NewKeeper(), reuse.NewKeyed(), reuse.NewLeaf(), reuse.NewMarked(), reuse.NewNode(),
	reuse.NewPreset(), reuse.NewValue(), new(reuse.NodesSwapResult),
	sets.NewArm(), sets.NewChoice(), sets.NewMapArm(), sets.NewMaps(), sets.NewNested(), sets.NewPoint(), sets.NewScalars(), sets.NewTree(), new(sets.TagsSwapArgs), new(sets.TagsSwapResult),
	shapes.NewContainers(), shapes.NewEmpty(), shapes.NewFailure(), shapes.NewKeys(), shapes.NewOptional(),
	shapes.NewPlain(), shapes.NewPoint(), shapes.NewRequired(), shapes.NewShape(), shapes.NewWide(),
	new(shapes.EchoAStructArgs), new(shapes.EchoAnExceptionArgs), new(shapes.EchoPairsResult), new(shapes.EchoAUnionResult),
	streams.NewLine(), streams.NewPoint(),
	unknown.NewChoice(), unknown.NewDropped(), unknown.NewHolder(), unknown.NewMessage(), unknown.NewNothing(),
	unknown.NewPoint(), unknown.NewRefused(), new(unknown.RelayRelayArgs), new(unknown.RelayRelayResult),
	newer.NewChoice(), newer.NewLabel(), newer.NewMessage(), newer.NewNothing(), newer.NewPoint(), newer.NewRefused(),
	values.NewChoice(), values.NewHolder(), values.NewOptionals(), values.NewPoint(), values.NewRefused(),
	values.NewReplaced(), values.NewSettings(), values.NewWithin(), new(values.DefaultsGetArgs), new(values.DefaultsGetResult),
	viewsother.NewPlace(), views.NewChoice(), views.NewContainers(), views.NewEmpty(), views.NewFailure(), views.NewLeaf(),
	views.NewNames(), views.NewNamesView(), views.NewNamesView_(), views.NewNode(), views.NewOptional(), views.NewPlain(),
	views.NewDigest(), views.NewOctets(), views.NewPreset(), views.NewStrict(), views.NewTyped(),
	views.NewAround(), views.NewHolder(), views.NewInside(),
	viewmethods.NewOrder(), viewmethods.NewChoice(), viewmethods.NewClosed(), parcel.NewParcel(),
}

func TestDeclared_IsComplete(t *testing.T) {
	var listed []string
	for _, s := range declared {
		listed = append(listed, reflect.TypeOf(s).Elem().String())
	}
	files, err := filepath.Glob("../testdata/*/golden/*/*_types.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	constructor := regexp.MustCompile(`(?m)^func New\w+\(\) \*(\w+) \{`)
	for _, file := range files {
		switch path := filepath.ToSlash(file); {
		case strings.Contains(path, "/kitex"):
			continue // which package roundtripkitex has
		case strings.Contains(path, "/deep"):
			continue // which cannot be read
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range constructor.FindAllSubmatch(content, -1) {
			name := filepath.Base(filepath.Dir(file)) + "." + string(match[1])
			if !slices.Contains(listed, name) {
				t.Errorf("%s is not in the list", name)
			}
		}
	}
}

func TestRoundTrip_KeepsEverything(t *testing.T) {
	for _, prototype := range declared {
		t.Run(reflect.TypeOf(prototype).Elem().String(), func(t *testing.T) {
			for seed := range uint64(20) {
				sent := newFilled(prototype, seed)
				message, err := thrift.Marshal(sent)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				received := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
				if err := thrift.Unmarshal(message, received); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if !reflect.DeepEqual(sent, received) {
					t.Fatalf("seed %d:\nsent     %+v\nreceived %+v", seed, sent, received)
				}
			}
		})
	}
}

// TestRoundTrip_OfZeroValues writes what New returns. What is nil and written
// comes back as an empty container, so the comparison is of a second round.
func TestRoundTrip_OfZeroValues(t *testing.T) {
	for _, prototype := range declared {
		if unions[reflect.TypeOf(prototype).Elem()] {
			continue
		}
		message, err := thrift.Marshal(prototype)
		if err != nil {
			if !holdsUnsetUnion(prototype) {
				t.Errorf("%T: %v", prototype, err)
			}
			continue
		}
		first := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
		if err := thrift.Unmarshal(message, first); err != nil {
			t.Errorf("%T: %v", prototype, err)
			continue
		}
		again, err := thrift.Marshal(first)
		if err != nil {
			t.Errorf("%T: %v", prototype, err)
		}
		second := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(thrift.Struct)
		if err := thrift.Unmarshal(again, second); err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%T: %v\nfirst  %+v\nsecond %+v", prototype, err, first, second)
		}
	}
}

// holdsUnsetUnion says that a value cannot be written as it is: it contains a
// union by value, or it is a list of arguments without its struct.
func holdsUnsetUnion(s thrift.Struct) bool {
	switch s.(type) {
	case *retention.CachePutArgs, *shapes.Plain, *shapes.Required, *inherit.ChildCombineArgs, *hostile.CommandsRunArgs, *orders.OrdersPlaceArgs,
		*shapes.EchoAStructArgs, *shapes.EchoAnExceptionArgs, *values.DefaultsGetArgs, *ids.NegativeSwapArgs, *unknown.RelayRelayArgs, *nested.Holder, *views.Around:
		return true
	}
	return false
}
