// Sets whose elements must not be equal, of all types.
namespace go sets

enum Color { RED, GREEN, BLUE }

typedef binary Blob
typedef set<Blob> Blobs

struct Point {
  1: i32 x
  2: double y
  3: optional string label
  4: map<string, i32> tags
} (go.unknown = "keep")

union Choice {
  1: i32 number
  2: string text
}

struct Scalars {
  1: set<bool> bools (go.set = "unique")
  2: set<i8> bytes (go.set = "unique")
  3: set<i16> shorts (go.set = "unique")
  4: set<i32> ints (go.set = "unique")
  5: set<i64> longs (go.set = "unique")
  6: set<double> doubles (go.set = "unique")
  7: set<string> texts (go.set = "unique")
  8: set<binary> blobs (go.set = "unique")
  9: set<uuid> uuids (go.set = "unique")
  10: set<Color> colors (go.set = "unique")
  11: Blobs named (go.set = "unique")
  12: set<i32> repeated (go.set = "list")
}

struct Nested {
  1: set<Point> points (go.set = "unique")
  2: set<Choice> choices (go.set = "unique")
  3: set<list<i32>> lists (go.set = "unique")
  4: set<map<string, Point>> maps (go.set = "unique")
  5: set<set<string>> sets (go.set = "unique")
  6: list<set<i32>> many (go.set = "unique")
  7: map<set<string>, set<Point>> pairs (go.set = "unique")
  8: map<string, list<set<i64>>> deep (go.set = "unique")
  9: optional set<string> maybe (go.set = "unique")
  10: required set<i32> must (go.set = "unique")
  11: optional set<Point> perhaps = [{"x": 1}, {"x": 2}] (go.set = "unique")
}

struct Tree {
  1: i32 number
  2: set<Tree> children (go.set = "unique")
}

union Arm {
  1: set<string> texts (go.set = "unique")
  2: set<Point> points (go.set = "unique")
  3: i32 number
}

struct Maps {
  1: set<bool> bools (go.set = "map")
  2: set<i8> bytes (go.set = "map")
  3: optional set<i16> shorts = [3, 4] (go.set = "map")
  4: set<i32> ints = [1, 2] (go.set = "map")
  5: required set<i64> longs (go.set = "map")
  6: set<string> texts (go.set = "map")
  7: set<uuid> uuids (go.set = "map")
  8: set<Color> colors = [Color.RED] (go.set = "map")
  9: optional set<string> maybe (go.set = "map")
  10: set<string> words = [] (go.set = "map", go.strings = "own")
  11: map<bool, i32> others
}

union MapArm {
  1: set<string> texts (go.set = "map")
  2: i32 number
}

service Tags {
  set<string> swap(1: set<string> tags (go.set = "unique"), 2: set<Point> points (go.set = "unique"))
}
