namespace go bounds

/** What a peer could make large with few bytes, and programs with pointers. */
const list<i64> NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]

/** A byte on the wire, small in Go, and large with its defaults. */
struct Preset {
  1: list<i64> numbers = NUMBERS
  2: map<string, i64> sizes = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9}
}

/** Another one, whose defaults are those of a struct in it, and other kinds of them. */
struct Around {
  1: Preset preset
  2: binary blob = "0123456789abcdef0123456789abcdef"
  3: list<list<string>> texts = [["a"], ["b", "c"]]
  4: map<list<i32>, Leaf> pairs = {[1, 2]: {"name": "x"}}
  5: Leaf leaf = {"labels": ["y"]}
}

struct Leaf {
  1: string name = "leaf"
  2: list<string> labels
}

struct Presets {
  1: list<Preset> list
  2: map<i32, Preset> byNumber
  3: map<list<i32>, Preset> pairs
  4: Preset one
  5: optional Preset maybe
  6: list<Around> around
  7: optional Large large
  8: list<Line> lines
  9: list<list<i32>> rows
  10: map<list<i32>, bool> flags
  11: list<binary> blobs
}

/** Without defaults, and long in Go. */
struct Large { 1: Line a, 2: Line b, 3: Line c, 4: Line d, 5: Line e, 6: Line f, 7: Line g, 8: Line h }
struct Line { 1: i64 a, 2: i64 b, 3: i64 c, 4: i64 d, 5: i64 e, 6: i64 f, 7: i64 g, 8: i64 h }

/** Has methods of its own for JSON, and can contain itself. */
struct Switch {
  1: map<bool, Switch> next
  2: optional Switch other
  3: list<Switch> list
  4: string text
  5: map<list<bool>, Switch> pairs
  6: map<bool, list<map<double, Switch>>> deep
}

/** Containers of containers, which a program can let share their elements. */
struct Nested {
  1: list<list<list<list<list<list<i32>>>>>> lists
  2: list<map<i32, list<map<i32, list<list<string>>>>>> maps
  3: map<list<i32>, list<map<list<i32>, list<list<list<i64>>>>>> pairs
}
