// Everything that the tool of Kitex and fulmar gen --shape=kitex both generate: the
// names, types, tags and methods of one are compared with those of the other.
namespace go shape

include "common.thrift"

const i32 ANSWER = 42
const i32 more_answers = ANSWER
const i64 BIG = 9000000000
const double RATIO = 0.25
const double WHOLE = 3
const bool YES = true
const string GREETING = "hi \"you\""
const Color FAVOURITE = Color.GREEN
const list<i32> PRIMES = [2, 3, 5]
const map<string, i64> SIZES = {"small": 1}
const set<string> TAGS = ["one"]
const Leaf LEAF = {"name": "constant", "weight": 2.5, "note": "n"}
const list<Leaf> LEAVES = [{"name": "a"}, {"name": "b", "count": 4}]
const i32 SUM = common.BASE

enum Color {
  RED
  GREEN = 5
  blue_ish
}

enum Empty {}

typedef string Word
typedef list<Word> Words
typedef map<Word, Leaf> Leaves
typedef Leaf Sheet
typedef Color Paint
typedef binary Blob

/** A leaf. */
struct Leaf {
  1: string name // what it is called
  2: optional i32 count
  3: double weight
  4: optional string note
}

struct Scalars {
  1: bool flag
  2: i8 tiny
  3: i16 small
  4: i32 medium
  5: i64 large
  6: double ratio
  7: string text
  8: binary bytes
  9: Color color
  10: common.Level level
  11: Word word
  12: common.Stamp stamp
}

struct Required {
  1: required bool flag
  2: required i64 large
  3: required string text
  4: required binary bytes
  5: required Color color
  6: required Leaf leaf
  7: required list<i32> list
  8: required list<Leaf> leaves
  9: required map<string, string> table
}

struct Optional {
  1: optional bool flag
  2: optional i8 tiny
  3: optional i16 small
  4: optional i32 medium
  5: optional i64 large
  6: optional double ratio
  7: optional string text
  8: optional binary bytes
  9: optional Color color
  10: optional common.Level level
  11: optional Word word
  12: optional common.Stamp stamp
  13: optional Leaf leaf
  14: optional list<string> list
  15: optional set<i64> numbers
  16: optional map<string, Leaf> leaves
  17: optional Words words
  18: optional Sheet sheet
  19: optional Blob blob
}

struct Defaults {
  1: bool flag = true
  2: i32 medium = 5
  3: i64 large = BIG
  4: double ratio = 1.5
  5: string text = "default"
  6: binary bytes = "bin"
  7: Color color = Color.GREEN
  8: list<i32> list = [1, 2]
  9: map<string, i32> table = {"a": 1}
  10: Leaf leaf = {"name": "leafy", "count": 9}
  11: common.Level level = common.USUAL
  21: optional bool maybe_flag = true
  22: optional i32 maybe_medium = 5
  23: optional i64 maybe_large = -1
  24: optional double maybe_ratio = 2
  25: optional string maybe_text = "maybe"
  26: optional binary maybe_bytes = "raw"
  27: optional Color maybe_color = Color.blue_ish
  28: optional list<string> maybe_list = ["x"]
  29: optional map<i32, string> maybe_table = {1: "one"}
  30: optional Leaf maybe_leaf = {"name": "optional"}
  31: required i32 always = 8
  32: optional i32 zero = 0
}

struct Containers {
  1: list<bool> flags
  2: list<i8> tinies
  3: list<i16> smalls
  4: list<i32> mediums
  5: list<i64> larges
  6: list<double> ratios
  7: list<string> texts
  8: list<binary> blobs
  9: list<Color> colors
  10: set<i32> numbers
  11: set<Leaf> leaf_set
  12: list<Leaf> leaves
  13: list<list<Leaf>> matrix
  14: map<string, Leaf> by_name
  15: map<i32, list<Leaf>> groups
  16: map<Color, common.Level> levels
  17: map<binary, i32> by_bytes
  18: map<common.Point, string> by_point
  19: list<map<string, list<i32>>> mixed
  20: map<string, map<i64, Leaf>> deep
  21: Words words
  22: Leaves table
  23: list<Word> word_list
  24: list<common.Spot> spots
  25: map<double, bool> odd
  26: map<string, list<Color>> paints
  27: list<set<map<i32, string>>> layers
  28: map<string, binary> attachments
  29: list<Choice> choices
}

struct Tree {
  1: i32 value
  2: Tree left
  3: optional Tree right
  4: list<Tree> children
  5: map<string, Tree> named
}

union Choice {
  1: string text
  2: i64 number
  3: Leaf leaf
  4: list<Leaf> leaves
  5: Color color
  6: binary bytes
}

union Preset {
  1: i32 number = 5
  2: string text
}

exception Failed {
  1: string reason
  2: optional i32 code
  3: optional Leaf leaf
}

struct Nothing {}

// Names that thriftgo changes.
struct Names {
  1: i32 customer_id
  2: i32 customerURL
  3: i32 hidden_
  4: i32 a_1
  5: i32 a__b
  6: i32 HTTP_Server
  7: string string
  8: i32 read
  9: i32 new_price
  10: i32 search_result
  11: i32 type
  12: i32 func
  13: i32 get_value
  14: i32 value
  15: optional i32 set_value
  16: i32 fooBar
  17: i32 foo_bar
  18: i32 tail_
  19: i32 args
  20: string tagged (go.tag = 'db:"tagged" json:"other"')
  21: string labelled (go.tag = 'db:"labelled"')
}

struct new_thing {
  1: i32 id
}

struct snake_case_name {
  1: optional new_thing thing
}

// A service and a struct of one name in Go.
struct forest {
  1: list<Tree> trees
}

service Forest extends common.Health {
  Leaf pick(1: Leaf leaf, 2: i32 number) throws (1: Failed failed, 2: common.Broken broken)
  string name(1: Word word)
  list<Leaf> all(1: list<string> names, 2: map<string, Leaf> known)
  Color paint(1: Color color)
  binary raw(1: binary bytes)
  void plant(1: Tree tree)
  oneway void forget(1: i64 id)
  Choice choose(1: Choice choice)
  i64 count()
}
