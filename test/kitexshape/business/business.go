// Package business is code of a service on Kitex that uses its structs in every way.
// A copy of it, in which nothing but the imports differs, is compiled against ours.
package business

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/fulmar-rpc/fulmar/test/kitexshape/gen/kitex/common"
	"github.com/fulmar-rpc/fulmar/test/kitexshape/gen/kitex/shape"
)

// Constants uses constants as numbers of other types, which only those without a type
// allow.
func Constants() string {
	var wide int64 = shape.ANSWER
	var fraction float64 = shape.RATIO * shape.ANSWER
	const sum = shape.ANSWER + shape.BIG
	more := shape.MoreAnswers + shape.SUM
	wide += shape.BIG
	favourite := shape.FAVOURITE
	level := common.USUAL
	sizes, primes, tags := shape.SIZES, shape.PRIMES, shape.TAGS
	leaf := shape.LEAF
	return fmt.Sprint(wide, fraction, int64(sum), more, shape.YES, shape.GREETING, favourite, int64(favourite), level, shape.WHOLE/2,
		len(sizes), sizes["small"], primes, tags, leaf.Name, leaf.GetWeight(), *leaf.Note, leaf.IsSetCount(), len(shape.LEAVES), shape.LEAVES[1].GetCount())
}

// Enums turns enums into names, numbers, pointers and columns, and back.
func Enums() (string, error) {
	var out []string
	for _, name := range []string{"RED", "GREEN", "blue_ish", "PURPLE"} {
		color, err := shape.ColorFromString(name)
		out = append(out, fmt.Sprint(color, int64(color), err != nil))
	}
	pointer := shape.ColorPtr(shape.Color_GREEN)
	value, err := pointer.Value()
	if err != nil {
		return "", err
	}
	var scanned shape.Color
	if err := scanned.Scan(int64(5)); err != nil {
		return "", err
	}
	if err := scanned.Scan("no number"); err == nil {
		return "", errors.New("a text is no number")
	}
	var absent *shape.Color
	none, err := absent.Value()
	paint := shape.Paint(2)
	paint += shape.Color_RED + shape.Color_blue_ish - 2
	out = append(out, fmt.Sprint(*pointer == shape.Color_GREEN, value, scanned, none, err, paint, shape.Color(77), *common.LevelPtr(common.Level_HIGH)))
	switch paint {
	case shape.Color_RED, shape.Color_GREEN:
		return "", errors.New("blue is not red")
	case shape.Color_blue_ish:
	}
	return strings.Join(out, "; "), nil
}

func newString(s string) *string { return &s }

// Optional builds a struct in which everything is optional, twice: as a literal and
// by setters.
func Optional() []*shape.Optional {
	yes, tiny, small, medium, large, ratio := true, int8(-1), int16(2), int32(-3), int64(4), 0.5
	level := common.Level_LOW
	stamp := common.Stamp(99)
	literal := &shape.Optional{
		Flag: &yes, Tiny: &tiny, Small: &small, Medium: &medium, Large: &large, Ratio: &ratio,
		Text: newString("text"), Bytes: []byte("bytes"), Color: shape.ColorPtr(shape.Color_GREEN), Level: &level,
		Word: newString("word"), Stamp: &stamp, Leaf: &shape.Leaf{Name: "leaf"}, List: []string{"a", ""},
		Numbers: []int64{3, 1}, Leaves: map[string]*shape.Leaf{"one": {Name: "1", Count: &medium}, "nil": nil},
		Words: shape.Words{"w"}, Sheet: shape.NewSheet(), Blob: shape.Blob{0, 1},
	}
	built := shape.NewOptional()
	built.SetFlag(&yes)
	built.SetText(newString(""))
	built.SetBytes([]byte{})
	built.SetLeaf(shape.NewLeaf())
	built.SetList([]string{})
	built.SetLeaves(map[string]*shape.Leaf{})
	built.SetColor(shape.ColorPtr(shape.Color(1000)))
	return []*shape.Optional{literal, built, shape.NewOptional(), nil}
}

// Presence asks a struct what it has.
func Presence(o *shape.Optional) string {
	return fmt.Sprint(
		o.IsSetFlag(), o.IsSetTiny(), o.IsSetSmall(), o.IsSetMedium(), o.IsSetLarge(), o.IsSetRatio(), o.IsSetText(), o.IsSetBytes(),
		o.IsSetColor(), o.IsSetLevel(), o.IsSetWord(), o.IsSetStamp(), o.IsSetLeaf(), o.IsSetList(), o.IsSetNumbers(), o.IsSetLeaves(),
		o.GetFlag(), o.GetTiny(), o.GetSmall(), o.GetMedium(), o.GetLarge(), o.GetRatio(), o.GetText(), o.GetBytes(),
		o.GetColor(), o.GetLevel(), o.GetWord(), o.GetStamp(), o.GetLeaf() != nil, o.GetList(), o.GetNumbers(), len(o.GetLeaves()),
		o.GetWords(), o.GetSheet() == nil, o.GetBlob(),
		shape.Optional_Text_DEFAULT, shape.Optional_Leaf_DEFAULT == nil, shape.Optional_List_DEFAULT == nil)
}

// Defaults changes some of the fields with defaults, and asks for all.
func Defaults() []*shape.Defaults {
	fresh, changed, zero := shape.NewDefaults(), shape.NewDefaults(), &shape.Defaults{}
	changed.Text, changed.MaybeText = "other", "other"
	changed.MaybeMedium = 0
	changed.SetMaybeBytes([]byte("other"))
	changed.MaybeList = nil
	changed.MaybeLeaf.Count = &changed.Medium
	changed.List = append(changed.List, 3)
	again := &shape.Defaults{Medium: 1, Zero: 7}
	again.InitDefault()
	return []*shape.Defaults{fresh, changed, zero, again}
}

// DefaultPresence asks a struct with defaults what it has.
func DefaultPresence(d *shape.Defaults) string {
	return fmt.Sprint(
		d.IsSetLeaf(), d.IsSetMaybeFlag(), d.IsSetMaybeMedium(), d.IsSetMaybeLarge(), d.IsSetMaybeRatio(), d.IsSetMaybeText(),
		d.IsSetMaybeBytes(), d.IsSetMaybeColor(), d.IsSetMaybeList(), d.IsSetMaybeTable(), d.IsSetMaybeLeaf(), d.IsSetZero(),
		d.GetMedium(), d.GetText(), d.GetMaybeFlag(), d.GetMaybeMedium(), d.GetMaybeText(), d.GetMaybeBytes(), d.GetMaybeColor(),
		d.GetMaybeList(), d.GetMaybeTable(), d.GetMaybeLeaf() != nil, d.GetZero(), d.GetLevel(), d.Always,
		shape.Defaults_MaybeText_DEFAULT, shape.Defaults_MaybeMedium_DEFAULT+1, string(shape.Defaults_MaybeBytes_DEFAULT),
		shape.Defaults_MaybeColor_DEFAULT, shape.Defaults_MaybeLeaf_DEFAULT.Name)
}

// Containers builds containers in containers.
func Containers() *shape.Containers {
	c := shape.NewContainers()
	c.Flags, c.Tinies, c.Smalls, c.Mediums, c.Larges = []bool{true, false}, []int8{-1}, []int16{300}, []int32{70000}, []int64{1 << 40}
	c.Ratios, c.Texts, c.Blobs = []float64{0.5, -0.25}, []string{"", "x"}, [][]byte{{}, {1, 2}}
	c.Colors = []shape.Color{shape.Color_RED, shape.Color_blue_ish, shape.Color(-5)}
	c.Numbers = []int32{1, 2}
	for i := 0; i < 3; i++ {
		count := int32(i)
		leaf := &shape.Leaf{Name: fmt.Sprint("leaf ", i), Count: &count, Weight: float64(i) / 4}
		c.Leaves = append(c.Leaves, leaf)
		c.LeafSet = append(c.LeafSet, leaf)
		c.Matrix = append(c.Matrix, []*shape.Leaf{leaf, {Name: "inner"}})
	}
	c.ByName = map[string]*shape.Leaf{}
	for _, leaf := range c.Leaves {
		c.ByName[leaf.Name] = leaf
	}
	c.Groups = map[int32][]*shape.Leaf{1: c.Leaves[:1], 2: {}}
	c.Levels = map[shape.Color]common.Level{shape.Color_GREEN: common.Level_HIGH}
	c.ByBytes = map[string]int32{"\xff": 1}
	point := common.NewPoint()
	c.ByPoint = map[*common.Point]string{point: "seven", {X: 1}: "one"}
	c.Mixed = []map[string][]int32{{"a": {1}}, {}}
	c.Deep = map[string]map[int64]*shape.Leaf{"x": {1: c.Leaves[0]}}
	c.Words, c.Table, c.WordList = shape.Words{"w"}, shape.Leaves{"t": shape.NewLeaf()}, []shape.Word{"v"}
	c.Spots = []*common.Spot{common.NewSpot(), {X: 3, Y: 4}}
	c.Odd = map[float64]bool{0.5: true}
	c.Paints = map[string][]shape.Color{"p": {shape.Color_GREEN}}
	c.Layers = [][]map[int32]string{{{1: "one"}}}
	c.Attachments = map[string][]byte{"a": {9}}
	c.Choices = []*shape.Choice{{Number: &c.Larges[0]}, {Text: newString("t")}}
	return c
}

// Totals goes through containers.
func Totals(c *shape.Containers) string {
	total, names := 0.0, []string{}
	for name, leaf := range c.GetByName() {
		total += leaf.GetWeight()
		names = append(names, name)
	}
	sort.Strings(names)
	points := 0
	for point, name := range c.ByPoint {
		points += int(point.X)*10 + int(point.GetY()) + len(name)
	}
	for _, spot := range c.Spots {
		points += int(spot.Y)
	}
	for _, choice := range c.Choices {
		points += choice.CountSetFieldsChoice()
	}
	return fmt.Sprint(total, names, points, len(c.Matrix[2]), c.Groups[1][0].Name, c.Levels[shape.Color_GREEN], c.Deep["x"][1].GetCount())
}

// Trees builds a tree with nil in it.
func Trees() *shape.Tree {
	leaf := func(value int32) *shape.Tree {
		return &shape.Tree{Value: value, Children: []*shape.Tree{}, Named: map[string]*shape.Tree{}}
	}
	root := &shape.Tree{Value: 1, Left: leaf(2), Right: leaf(3)}
	root.Left.Children = append(root.Left.Children, leaf(4), nil, leaf(5))
	root.SetNamed(map[string]*shape.Tree{"six": leaf(6)})
	return root
}

// Unions builds unions, one of each field, and counts what is set.
func Unions() ([]*shape.Choice, string) {
	number := int64(5)
	all := []*shape.Choice{
		{Text: newString("")}, {Number: &number}, {Leaf: shape.NewLeaf()}, {Leaves: []*shape.Leaf{}},
		{Color: shape.ColorPtr(shape.Color_RED)}, {Bytes: []byte{}},
	}
	var out []string
	for _, choice := range append(all, &shape.Choice{}, &shape.Choice{Text: newString("a"), Number: &number}) {
		out = append(out, fmt.Sprint(choice.CountSetFieldsChoice(), choice.IsSetText(), choice.IsSetLeaf(), choice.GetNumber()))
	}
	preset := shape.NewPreset()
	out = append(out, fmt.Sprint(preset.CountSetFieldsPreset(), preset.Number, preset.IsSetNumber()))
	return all, strings.Join(out, "; ")
}

// Fail returns an exception as an error, which callers find.
func Fail(reason string) error {
	code := int32(4)
	return fmt.Errorf("failing: %w", &shape.Failed{Reason: reason, Code: &code})
}

// Exceptions finds exceptions in errors.
func Exceptions() string {
	var failed *shape.Failed
	var broken *common.Broken
	err := Fail("because")
	found := errors.As(err, &failed)
	fresh := common.NewBroken()
	fresh.Why = "why"
	var asError error = fresh
	return fmt.Sprint(found, errors.As(err, &broken), failed.GetReason(), failed.GetCode(), fresh.Code, fresh.IsSetCode(),
		asError.Error() != "", strings.Contains(fresh.String(), "why"), failed.GetLeaf() == nil)
}

// Names uses the names that the tool makes of odd ones.
func Names() *shape.Names {
	n := &shape.Names{
		CustomerId: 1, CustomerURL: 2, A_1: 4, A_B: 5, HTTP_Server: 6, String_: "s", Read_: 8, NewPrice_: 9, SearchResult_: 10,
		Type: 11, Func: 12, GetValue_: 13, Value: 14, SetValue_: new(int32), FooBar: 16, FooBar_: 17, Tail_: 18, Args_: 19,
		Tagged: "t", Labelled: "l",
	}
	n.SetNewPrice_(n.GetNewPrice_() + n.GetValue() + n.GetGetValue())
	return n
}

// JSON is what encoding/json makes of structs.
func JSON() (string, error) {
	var out []string
	for _, v := range []any{Names(), Optional()[0], Defaults()[1], Trees(), shape.NewSnakeCaseName()} {
		text, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		out = append(out, string(text))
	}
	read := shape.NewOptional()
	if err := json.Unmarshal([]byte(`{"color": 5, "text": "read", "leaves": {"a": {"name": "n"}}}`), read); err != nil {
		return "", err
	}
	return strings.Join(append(out, fmt.Sprint(*read.Color, *read.Text, read.Leaves["a"].Name)), "\n"), nil
}

// Handler implements the service.
type Handler struct{ forgotten []int64 }

var _ shape.Forest = (*Handler)(nil)

// Alive is inherited from another service.
func (h *Handler) Alive(ctx context.Context) (r bool, err error) { return true, nil }

// Pick implements the method of the definition.
func (h *Handler) Pick(ctx context.Context, leaf *shape.Leaf, number int32) (r *shape.Leaf, err error) {
	switch number {
	case 0:
		return nil, &shape.Failed{Reason: "none", Leaf: leaf}
	case 1:
		return nil, &common.Broken{Why: leaf.GetName()}
	}
	resp := shape.NewLeaf()
	resp.Name, resp.Count = strings.Repeat(leaf.Name, int(number)), &number
	return resp, nil
}

// Name implements the method of the definition.
func (h *Handler) Name(ctx context.Context, word shape.Word) (string, error) { return word + "!", nil }

// All implements the method of the definition.
func (h *Handler) All(ctx context.Context, names []string, known map[string]*shape.Leaf) (resp []*shape.Leaf, err error) {
	for _, name := range names {
		if leaf, ok := known[name]; ok {
			resp = append(resp, leaf)
		}
	}
	return
}

// Paint implements the method of the definition.
func (h *Handler) Paint(_ context.Context, color shape.Color) (shape.Color, error) {
	return color + 1, nil
}

// Raw implements the method of the definition.
func (h *Handler) Raw(_ context.Context, bytes []byte) ([]byte, error) { return bytes, nil }

// Plant implements the method of the definition.
func (h *Handler) Plant(_ context.Context, tree *shape.Tree) error { return nil }

// Forget implements the method of the definition.
func (h *Handler) Forget(_ context.Context, id int64) error {
	h.forgotten = append(h.forgotten, id)
	return nil
}

// Choose implements the method of the definition: no result is no failure.
func (h *Handler) Choose(_ context.Context, choice *shape.Choice) (*shape.Choice, error) {
	if choice.IsSetText() {
		return nil, nil
	}
	return choice, nil
}

// Count implements the method of the definition.
func (h *Handler) Count(context.Context) (int64, error) { return int64(len(h.forgotten)), nil }
