package codec

import (
	"math/rand/v2"

	"github.com/fulmar-rpc/fulmar/bench/gen/messages"
	"github.com/fulmar-rpc/fulmar/thrift"
)

//go:generate fulmar gen -o ../gen ../idl/codec.thrift
//go:generate fulmar gen --shape=kitex -o ../gen/kitexshape ../idl/codec.thrift
//go:generate fulmar gen --views -o ../gen/views ../idl/codec.thrift

// DataSet is what a case encodes or decodes.
type DataSet struct {
	Name string
	// Struct is what its messages are, as codec.thrift names it.
	Struct string
	// Bytes is how long each of its messages is in Thrift Binary.
	Bytes int
	// Messages is how many there are. They differ in content, not in length, so
	// that the processor does not learn one by heart; those that fill its caches
	// by themselves are one.
	Messages int
	build    func(source) thrift.Struct
}

// manyMessages times 32 KiB stay within a second-level cache.
const manyMessages = 8

// DataSets returns those of suite codec, but for MyTest.
func DataSets() []DataSet {
	return []DataSet{
		{Name: "complex-11k", Struct: "Complex", Bytes: 11_429, Messages: manyMessages, build: source.complex},
		small("small-20k", 20_441, manyMessages, 124),
		small("small-6m", 6_004_293, 1, 36_500),
		mixed("mixed-20k", 20_452, manyMessages, 72, 24),
		mixed("mixed-6m", 5_992_552, 1, 21_150, 7_050),
		{Name: "tiny-74b", Struct: "Tiny", Bytes: 74, Messages: manyMessages, build: source.tiny},
		echo("echo-1k", 1<<10),
		echo("echo-32k", 32<<10),
		int64List("list-i64-1k", 1<<10),
		int64List("list-i64-131k", 128<<10),
		int32List("list-i32-1k", 1<<10),
		int32List("list-i32-131k", 128<<10),
	}
}

func small(name string, bytes, messages, items int) DataSet {
	return DataSet{Name: name, Struct: "Small", Bytes: bytes, Messages: messages, build: func(s source) thrift.Struct { return s.small(items) }}
}

func mixed(name string, bytes, messages, items, entries int) DataSet {
	return DataSet{Name: name, Struct: "Mixed", Bytes: bytes, Messages: messages, build: func(s source) thrift.Struct { return s.mixed(items, entries) }}
}

// echo has 19 bytes beside the text.
func echo(name string, length int) DataSet {
	return DataSet{Name: name, Struct: "Echo", Bytes: length + 19, Messages: manyMessages, build: func(s source) thrift.Struct { return s.echo(length) }}
}

// Lists have 9 bytes beside their elements.
const besideElements = 9

func int64List(name string, n int) DataSet {
	return DataSet{
		Name: name, Struct: "Int64List", Bytes: besideElements + 8*n, Messages: listsOf(n),
		build: func(s source) thrift.Struct { return &messages.Int64List{Values: s.numbers(n)} },
	}
}

func int32List(name string, n int) DataSet {
	return DataSet{
		Name: name, Struct: "Int32List", Bytes: besideElements + 4*n, Messages: listsOf(n),
		build: func(s source) thrift.Struct { return s.int32List(n) },
	}
}

// listsOf returns how many lists of n elements a set has.
func listsOf(n int) int {
	if n > 4<<10 {
		return 1
	}
	return manyMessages
}

// list tells that there is nothing but one list of numbers.
func (d DataSet) list() bool { return d.Struct == "Int64List" || d.Struct == "Int32List" }

// Build returns a message of the set, the same whenever it is asked for.
func (d DataSet) Build(message int) thrift.Struct {
	return d.build(source{rand.New(rand.NewPCG(seed, uint64(message)))})
}

const seed = 11_429

// The lengths of texts, and of the lists and maps in an item: about 15 bytes on
// the wire for each object that Kitex allocates to decode them, as in the
// article's messages of 20 KB and 6 MB.
const (
	traceBytes = 16
	nameBytes  = 10
	itemLabels = 3
	labelBytes = 6
	itemAttrs  = 2
	keyBytes   = 4
	attrBytes  = 6
	tagBytes   = 5
	itemIDs    = 4
	noteBytes  = 8
	indexBytes = 8
)

// The sizes of Complex, those of EchoComplex in Kitex's benchmark.
const (
	complexText  = 1 << 10
	complexNames = "abcde"
	complexParts = 100
	partBytes    = 10
	groupParts   = 2
	echoAction   = "echo"
)

// source makes reproducible content.
type source struct{ random *rand.Rand }

// text returns printable ASCII, which is as long in every encoding.
func (s source) text(length int) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte('0' + s.random.IntN('z'-'0'+1))
	}
	return string(b)
}

func (s source) texts(n, length int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = s.text(length)
	}
	return texts
}

func (s source) numbers(n int) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = int64(s.random.Uint64())
	}
	return numbers
}

func (s source) flag() bool { return s.random.IntN(2) == 1 }

// half returns n flags of which half are set, in any order.
func (s source) half(n int) []bool {
	flags := make([]bool, n)
	for i := range n / 2 {
		flags[i] = true
	}
	s.random.Shuffle(n, func(i, j int) { flags[i], flags[j] = flags[j], flags[i] })
	return flags
}

func (s source) tiny() thrift.Struct {
	return &messages.Tiny{
		Name: s.text(16), Birthday: s.random.Int64(), Phone: s.text(10),
		Siblings: s.random.Int32(), Spouse: s.flag(), Money: s.random.Float64(),
	}
}

func (s source) echo(length int) thrift.Struct {
	return &messages.Echo{Action: echoAction, Msg: s.text(length)}
}

func (s source) complex() thrift.Struct {
	c := &messages.Complex{
		Action: echoAction, Msg: s.text(complexText),
		ByName: make(map[string]*messages.Part, len(complexNames)),
		Parts:  s.parts(complexParts),
		Groups: []messages.Group{s.group()},
		Flag:   s.group(),
	}
	for _, name := range complexNames {
		part := s.part(complexText)
		c.ByName[string(name)] = &part
	}
	return c
}

func (s source) part(length int) messages.Part {
	return messages.Part{Number: thrift.Some(s.random.Int64()), Value: thrift.Some(s.text(length))}
}

func (s source) parts(n int) []messages.Part {
	parts := make([]messages.Part, n)
	for i := range parts {
		parts[i] = s.part(partBytes)
	}
	return parts
}

func (s source) group() messages.Group {
	return messages.Group{Number: thrift.Some(s.random.Int64()), Value: thrift.Some(s.text(complexText)), Parts: s.parts(groupParts)}
}

func (s source) small(items int) thrift.Struct {
	made := &messages.Small{Trace: s.text(traceBytes), Items: make([]messages.SmallItem, items), Total: thrift.Some(s.random.Int64())}
	for i, noted := range s.half(items) {
		made.Items[i] = s.smallItem(noted)
	}
	return made
}

func (s source) smallItem(noted bool) messages.SmallItem {
	item := messages.SmallItem{
		ID: s.random.Int64(), Name: s.text(nameBytes), Kind: s.random.Int32(), Score: s.random.Float64(), Flag: s.flag(),
		Labels: s.texts(itemLabels, labelBytes), Tag: s.tag(), IDs: s.numbers(itemIDs),
	}
	if noted {
		item.Note = thrift.Some(s.text(noteBytes))
	}
	return item
}

func (s source) tag() messages.Tag { return messages.Tag{Key: s.text(tagBytes), Val: s.text(tagBytes)} }

func (s source) mixed(items, entries int) thrift.Struct {
	made := &messages.Mixed{
		Trace: s.text(traceBytes), Items: make([]messages.Item, items),
		Index: make(map[string]*messages.Item, entries), Total: thrift.Some(s.random.Int64()),
	}
	for i, noted := range s.half(items) {
		made.Items[i] = s.item(noted)
	}
	for _, noted := range s.half(entries) {
		key, item := s.text(indexBytes), s.item(noted)
		made.Index[key] = &item
	}
	return made
}

func (s source) item(noted bool) messages.Item {
	small := s.smallItem(noted)
	item := messages.Item{
		ID: small.ID, Name: small.Name, Kind: small.Kind, Score: small.Score, Flag: small.Flag,
		Labels: small.Labels, Attrs: make(map[string]string, itemAttrs), Tag: small.Tag, IDs: small.IDs, Note: small.Note,
	}
	for range itemAttrs {
		item.Attrs[s.text(keyBytes)] = s.text(attrBytes)
	}
	return item
}

func (s source) int32List(n int) thrift.Struct {
	list := &messages.Int32List{Values: make([]int32, n)}
	for i := range list.Values {
		list.Values[i] = int32(s.random.Uint32())
	}
	return list
}
