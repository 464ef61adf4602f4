// What can be read into where it is. Generated with --reuse.
namespace go reuse

include "other.thrift"

enum Color {
  RED = 1
  BLUE = 2
}

union Value {
  1: i64 number
  2: string text
  3: list<i32> numbers
  4: Leaf leaf
}

struct Leaf {
  1: i32 number
  2: optional string text
}

struct Preset {
  1: string name = "nobody"
  2: list<string> tags = ["a", "b"]
  3: map<string, i32> counts = {"a": 1}
  4: optional i32 size = 7
}

/** Has no defaults, which are made for each message. */
struct Branch {
  1: list<Leaf> leaves
  2: list<i64> numbers
  3: optional list<string> labels
  4: optional Branch next
  5: map<i32, i32> counts
  6: list<Branch> branches
  7: list<i8> bytes (go.type = "[]byte")
}

/** Keeps what it does not know. */
struct Keeper {
  1: i32 number
  2: optional Keeper next
  3: list<Keeper> keepers
} (go.unknown = "keep")

/** Its defaults are in Go a part of the key, and some keys are as they were made. */
struct Corner {
  1: i32 x = 5
  2: string name = "corner"
  3: optional i32 z = 7
}

/** Apart from Node, which would otherwise send on what tests of it compare. */
struct Keyed {
  1: map<Corner, i32> numbers
  2: map<Corner, Preset> presets
  3: map<Preset, Corner> pairs
  4: list<map<Corner, string>> tables
}

struct Node {
  1: string name
  2: list<string> labels
  3: list<i64> numbers
  4: list<Color> colors
  5: list<binary> blobs
  6: list<Node> children
  7: map<string, Leaf> leaves
  8: map<i32, list<string>> groups
  9: map<Leaf, i32> byLeaf
  10: Leaf leaf
  11: Preset preset
  12: list<Preset> presets
  13: list<Value> values
  14: optional Value value
  15: optional Node next
  16: optional Preset other
  17: optional list<string> notes
  18: required list<i32> must
  19: list<list<Leaf>> grid
  20: map<list<i32>, Preset> pairs
  21: binary blob
  22: other.Place place
  23: list<other.Place> places
  24: set<uuid> ids
  25: optional Color color
  26: list<bool> flags
  27: optional map<string, Preset> named
}

service Nodes {
  Node swap(1: Node node, 2: list<Node> nodes)
}

struct Marked {
  1: set<i32> numbers (go.set = "map")
  2: set<string> texts (go.set = "unique")
}
