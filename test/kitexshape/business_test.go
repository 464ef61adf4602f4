package kitexshape_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kitexthrift "github.com/cloudwego/gopkg/protocol/thrift"
	"github.com/fulmar-rpc/fulmar/test/kitexshape/business"
	ours "github.com/fulmar-rpc/fulmar/test/kitexshape/gen/business"
	oursCommon "github.com/fulmar-rpc/fulmar/test/kitexshape/gen/fulmar/common"
	oursShape "github.com/fulmar-rpc/fulmar/test/kitexshape/gen/fulmar/shape"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// TestBusiness_IsOneSource wants the copies to differ in imports only.
func TestBusiness_IsOneSource(t *testing.T) {
	names, err := filepath.Glob("business/*.go")
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		original, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		replaced, err := os.ReadFile(filepath.Join("gen", name))
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.ReplaceAll(original, []byte(module+"kitex/"), []byte(module+"fulmar/")); !bytes.Equal(want, replaced) || bytes.Equal(original, replaced) {
			t.Errorf("%s is not the copy that go generate makes", name)
		}
	}
}

// TestBusiness_ComesToTheSame runs the functions of both copies.
func TestBusiness_ComesToTheSame(t *testing.T) {
	text := func(value string, err error) string {
		if err != nil {
			t.Error(err)
		}
		return value
	}
	kitexUnions, kitexCounts := business.Unions()
	oursUnions, oursCounts := ours.Unions()
	for what, pair := range map[string][2]string{
		"constants":  {business.Constants(), ours.Constants()},
		"enums":      {text(business.Enums()), text(ours.Enums())},
		"optional":   {business.Text(business.Optional()), ours.Text(ours.Optional())},
		"defaults":   {business.Text(business.Defaults()), ours.Text(ours.Defaults())},
		"containers": {business.Text(business.Containers()), ours.Text(ours.Containers())},
		"totals":     {business.Totals(business.Containers()), ours.Totals(ours.Containers())},
		"trees":      {business.Text(business.Trees()), ours.Text(ours.Trees())},
		"unions":     {business.Text(kitexUnions) + kitexCounts, ours.Text(oursUnions) + oursCounts},
		"exceptions": {business.Exceptions(), ours.Exceptions()},
		"names":      {business.Text(business.Names()), ours.Text(ours.Names())},
		"JSON":       {text(business.JSON()), text(ours.JSON())},
		"nested":     {text(business.Nested()), text(ours.Nested())},
	} {
		if pair[0] != pair[1] || pair[0] == "" {
			t.Errorf("%s\n  Kitex %s\n  ours  %s", what, pair[0], pair[1])
		}
	}
	for i, o := range business.Optional()[:3] {
		if kitex, own := business.Presence(o), ours.Presence(ours.Optional()[i]); kitex != own {
			t.Errorf("presence\n  Kitex %s\n  ours  %s", kitex, own)
		}
	}
	for i, d := range business.Defaults() {
		if d.MaybeLeaf != nil || i == 2 {
			if kitex, own := business.DefaultPresence(d), ours.DefaultPresence(ours.Defaults()[i]); kitex != own {
				t.Errorf("presence of defaults\n  Kitex %s\n  ours  %s", kitex, own)
			}
		}
	}
}

// TestBytes_AreUnderstood writes values with each of the two, and reads them with
// both: by FastRead and, ours, by Unmarshal as calls do. What is read is the same,
// and so are lengths; the order of fields may differ, and that of maps does.
func TestBytes_AreUnderstood(t *testing.T) {
	checked := 0
	check := func(name string, kitex business.Struct, own ours.Struct) {
		t.Helper()
		if kitexText, ownText := business.Text(kitex), ours.Text(own); kitexText != ownText {
			t.Errorf("%s\n  Kitex %s\n  ours  %s", name, kitexText, ownText)
			return
		}
		kitexBytes, ownBytes := business.Bytes(kitex), ours.Bytes(own)
		marshalled, err := thrift.Marshal(own.(thrift.Struct))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(kitexBytes) != kitex.BLength() || len(ownBytes) != len(kitexBytes) || own.BLength() != len(ownBytes) || len(marshalled) != len(ownBytes) {
			t.Errorf("%s: Kitex wrote %d of %d bytes, FastWrite %d of %d, Marshal %d", name, len(kitexBytes), kitex.BLength(), len(ownBytes), own.BLength(), len(marshalled))
		}
		want := readKitex(t, name, kitexBytes)
		for what, got := range map[string]string{
			"Kitex reads FastWrite":      readKitex(t, name, ownBytes),
			"Kitex reads Marshal":        readKitex(t, name, marshalled),
			"FastRead reads Kitex":       readOurs(t, name, kitexBytes),
			"FastRead reads FastWrite":   readOurs(t, name, ownBytes),
			"Unmarshal reads Kitex":      unmarshal(t, name, kitexBytes),
			"Unmarshal reads FastWrite":  unmarshal(t, name, ownBytes),
			"FastRead reads with a tail": readOurs(t, name, append(kitexBytes[:len(kitexBytes):len(kitexBytes)], 1, 2, 3)),
		} {
			if got != want {
				t.Errorf("%s, %s:\n  got  %s\n  want %s", name, what, got, want)
			}
		}
		checked++
	}
	for name, values := range business.Values() {
		for i, kitex := range values {
			check(name, kitex, ours.Values()[name][i])
		}
	}
	for name := range business.News() {
		for seed := range uint64(30) {
			check(name, business.Filled(name, seed), ours.Filled(name, seed))
		}
	}
	if checked < 500 {
		t.Errorf("%d values were compared, which are not all", checked)
	}
}

func readKitex(t *testing.T, name string, b []byte) string {
	t.Helper()
	s := business.News()[name]()
	if n, err := s.FastRead(b); err != nil || n != len(b) {
		t.Errorf("%s: Kitex read %d of %d bytes: %v", name, n, len(b), err)
	}
	return business.Text(s)
}

func readOurs(t *testing.T, name string, b []byte) string {
	t.Helper()
	s := ours.News()[name]()
	if n, err := s.FastRead(b); err != nil || n != len(b) && string(b[n:]) != "\x01\x02\x03" {
		t.Errorf("%s: FastRead read %d of %d bytes: %v", name, n, len(b), err)
	}
	return ours.Text(s)
}

func unmarshal(t *testing.T, name string, b []byte) string {
	t.Helper()
	s := ours.News()[name]()
	if err := thrift.Unmarshal(b, s.(thrift.Struct)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return ours.Text(s)
}

// TestRead_RefusesWhatKitexRefuses wants both to miss required fields, and to panic
// over unions without a field.
func TestRead_RefusesWhatKitexRefuses(t *testing.T) {
	for _, message := range [][]byte{{0}, business.Bytes(business.Filled("Leaf", 1))} {
		if _, err := business.News()["Required"]().FastRead(message); err == nil {
			t.Error("Kitex misses nothing")
		}
		if _, err := ours.News()["Required"]().FastRead(message); err == nil || !strings.Contains(err.Error(), "required but absent") {
			t.Errorf("FastRead: %v", err)
		}
	}
	for _, write := range []func(){
		func() { business.Bytes(business.News()["Choice"]()) },
		func() { ours.Bytes(ours.News()["Choice"]()) },
	} {
		if !panics(write) {
			t.Error("a union without a field is written")
		}
	}
}

func panics(call func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	call()
	return false
}

// TestNocopy_TakesTheWriterOfKitex passes a value of the other interface type.
func TestNocopy_TakesTheWriterOfKitex(t *testing.T) {
	var writer kitexthrift.NocopyWriter = refusing{}
	leaf := oursShape.Leaf{Name: strings.Repeat("x", 10000)}
	buf := make([]byte, leaf.BLength())
	if n := leaf.FastWriteNocopy(buf, writer); n != len(buf) || !bytes.Contains(buf, []byte(leaf.Name)) {
		t.Errorf("%d of %d bytes", n, len(buf))
	}
}

type refusing struct{}

func (refusing) WriteDirect([]byte, int) error { return errors.New("called") }

// TestHandler_IsServed calls the business code through the stubs of ours, without a
// network: everything is written and read.
func TestHandler_IsServed(t *testing.T) {
	wire := &loopback{}
	handler := &ours.Handler{}
	oursShape.RegisterForestServer(wire, handler)
	client := oursShape.NewForestClient(wire)
	ctx := context.Background()

	leaf, err := client.Pick(ctx, &oursShape.Leaf{Name: "ab"}, 2)
	if err != nil || leaf.Name != "abab" || leaf.GetCount() != 2 {
		t.Errorf("Pick: %v, %v", leaf, err)
	}
	var failed *oursShape.Failed
	if _, err := client.Pick(ctx, &oursShape.Leaf{Name: "why"}, 0); !errors.As(err, &failed) || failed.Leaf.Name != "why" {
		t.Errorf("Pick: %v", err)
	}
	var broken *oursCommon.Broken
	if _, err := client.Pick(ctx, nil, 1); !errors.As(err, &broken) || broken.Why != "" {
		t.Errorf("Pick of nil, which is an empty struct: %v", err)
	}
	if alive, err := client.Alive(ctx); err != nil || !alive {
		t.Errorf("Alive: %v, %v", alive, err)
	}
	if name, err := client.Name(ctx, "word"); err != nil || name != "word!" {
		t.Errorf("Name: %q, %v", name, err)
	}
	known := map[string]*oursShape.Leaf{"a": {Name: "A"}, "b": {Name: "B"}}
	if all, err := client.All(ctx, []string{"b", "c", "a"}, known); err != nil || len(all) != 2 || all[0].Name != "B" {
		t.Errorf("All: %v, %v", all, err)
	}
	if color, err := client.Paint(ctx, oursShape.Color_GREEN); err != nil || color != oursShape.Color_blue_ish {
		t.Errorf("Paint: %v, %v", color, err)
	}
	if raw, err := client.Raw(ctx, []byte{1}); err != nil || !bytes.Equal(raw, []byte{1}) {
		t.Errorf("Raw: %v, %v", raw, err)
	}
	number := int64(3)
	if choice, err := client.Choose(ctx, &oursShape.Choice{Number: &number}); err != nil || choice.GetNumber() != 3 {
		t.Errorf("Choose: %v, %v", choice, err)
	}
	text := "none"
	if choice, err := client.Choose(ctx, &oursShape.Choice{Text: &text}); err != nil || choice != nil {
		t.Errorf("a nil result: %v, %v", choice, err)
	}
	if err := errors.Join(client.Plant(ctx, &oursShape.Tree{}), client.Forget(ctx, 7)); err != nil {
		t.Error(err)
	}
	if count, err := client.Count(ctx); err != nil || count != 1 {
		t.Errorf("Count: %d, %v", count, err)
	}
}
