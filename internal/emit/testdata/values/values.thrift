namespace go values

enum Level { LOW = 1, HIGH = 3 }

const bool ON = 1
const i8 TINY = -128
const i16 SMALL = 0x7f
const i32 INT = 2147483647
const i64 LARGE = -9223372036854775808
const double PI = 3.14
const double WHOLE = 3
const double NEGATIVE_ZERO = -0.0
const double HUGE_NUMBER = 1e300
/** Text with everything that could end a string. */
const string TEXT = "a\"b\\c\n`d` ${e} %s\t\u00e9"
const binary BYTES = "\x00\xff"
const uuid ID = "01234567-89AB-cdef-0123-456789abcdef"
const Level LEVEL = Level.HIGH
const Level BY_NUMBER = 1
const i32 FROM_ENUM = Level.HIGH
const i32 ALIAS = INT
const list<i32> LIST = [1, INT, 3]
const list<list<string>> NESTED = [["a"], [], ["b", TEXT]]
const set<Level> SET = [Level.LOW, 3]
const map<string, i64> MAP = {"a": 1, "b": 2}
const map<Level, list<bool>> MAP_OF_LISTS = {Level.LOW: [1, 0], 3: []}
const map<binary, binary> BINARY_KEYS = {"k": "v"}
const map<list<i32>, Point> PAIRS = {[1, 2]: {"x": 1}, []: {}}
const map<Point, string> POINTS = {{"x": 1, "y": 2}: "a"}
const Point ORIGIN = {}
const Point CORNER = {"x": 10, "label": "corner"}
const Choice CHOSEN = {"number": 4}
const Settings SETTINGS = {"retries": 9}
const map<string, Settings> NAMED_SETTINGS = {"new": {}, "given": {"retries": 9}}
const list<Settings> ALL_SETTINGS = [{}, {"retries": 1}]
const list<Point> LONG_LIST = [{"x": 100000, "y": 100000}, {"x": 200000, "y": 200000}, {"x": 300000, "y": 300000}, {"x": 4}]

struct Point {
  1: i32 x = 1
  2: i32 y = 2
  3: optional string label = "none"
  4: optional i16 weight
  5: optional Level level = Level.HIGH
}

union Choice { 1: i32 number, 2: string text, 3: Point point }

struct Settings {
  1: bool verbose = true
  2: i8 retries = 3
  3: double ratio = 0.5
  4: string name = TEXT
  5: binary raw = "raw"
  6: uuid id = "00000000-0000-0000-0000-000000000001"
  7: Level level = Level.LOW
  8: Point point = {"x": 7}
  9: Point corner
  10: list<i32> list = LIST
  11: set<string> tags = ["a"]
  12: map<string, Point> named = {"p": {"y": 5}}
  13: required i32 limit = INT
  14: map<list<i32>, string> pairs = {[1]: "one"}
  15: Choice choice = {"text": "t"}
}

/** Getters return these; the fields stay unset. */
struct Optionals {
  1: optional bool verbose = true
  2: optional i8 retries = 3
  3: optional double ratio = 2
  4: optional string name = TEXT
  5: optional binary raw = "raw"
  6: optional uuid id = ID
  7: optional Level level = Level.LOW
  8: optional Point point = {"x": 7}
  9: optional list<i32> list = [1, 2]
  10: optional map<string, Point> named = {"p": {}}
  11: optional Level unknown = 77
  12: optional Settings settings = {"retries": 1}
  13: optional binary plain
}

struct Holder { 1: Settings settings, 2: list<Settings> list, 3: map<i32, Settings> map, 4: optional Settings maybe, 5: map<list<i32>, Settings> pairs }

/** What JSON replaces, and does not add to. */
struct Replaced {
  1: Choice choice = {"number": 4}
  2: map<string, i32> counts = {"given": 1}
  3: list<Choice> choices = [{"number": 1}, {"text": "t"}]
  4: Within within = {"counts": {"given": 1}, "left": 7}
  5: map<string, list<Point>> points = {"a": [{"x": 5}]}
}

struct Within { 1: map<string, i32> counts, 2: i32 left, 3: i32 right }

exception Refused { 1: i32 code = 403, 2: string why = "no" }

service Defaults {
  Settings get(1: i32 id = 5, 2: Level level = Level.HIGH, 3: Settings settings, 4: list<string> names = ["a"], 5: Point point = {"x": 3}) throws (1: Refused refused)
}
