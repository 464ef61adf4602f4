enum Status { NEW = 1, OLD = 2 }
enum Other { NEW }
typedef Status Alias
struct Point { 1: required i32 x, 2: i32 y, 3: required i32 z = 1 }
union Choice { 1: i32 a, 2: string b }

const bool BOOL_NUMBER = 2
const bool BOOL_STRING = "true"
const bool BOOL_FINE = 1
const i8 I8_LARGE = 128
const i8 I8_SMALL = -129
const byte BYTE_FINE = -128
const i16 I16_LARGE = 32768
const i32 I32_LARGE = 0x80000000
const i32 I32_DOUBLE = 1.0
const i32 I32_BOOL = true
const i32 I32_STRING = '1'
const i64 I64_FINE = -9223372036854775808
const double DOUBLE_STRING = "1"
const double DOUBLE_FINE = 1
const string STRING_NUMBER = 1
const string STRING_BYTES = "\xff"
const binary BINARY_FINE = "\xff"
const uuid UUID_SHORT = "01234567-89ab-cdef-0123-456789abcde"
const uuid UUID_DIGIT = "01234567-89ab-cdef-0123-456789abcdeg"
const uuid UUID_DASH = "01234567089ab-cdef-0123-456789abcdef"
const Status STATUS_OTHER = Other.NEW
const Status STATUS_BARE = NEW
const Status STATUS_UNKNOWN = Status.LOST
const Status STATUS_NUMBER = 7
const Status STATUS_RANGE = 3000000000
const Status STATUS_STRING = "NEW"
const Status STATUS_FINE = Alias.OLD
const list<i32> LIST_MAP = {1: 2}
const list<i32> LIST_ELEMENTS = [1, "2", 3.0, 4]
const set<i32> SET_TWICE = [1, 2, 0x1]
const map<string, i32> MAP_LIST = [1]
const map<string, i32> MAP_TWICE = {"a": 1, 'a': 2, "b": "c", 3: 4}
const map<double, i32> MAP_ZERO = {0: 1, -0.0: 2}
const Point POINT_FIELDS = {"x": 1, "x": 2, "w": 3, 4: 5, "y": "text"}
const Point POINT_MISSING = {"y": 1}
const Point POINT_LIST = [1]
const Choice CHOICE_NONE = {}
const Choice CHOICE_BOTH = {"a": 1, "b": "x"}
const i32 TYPE_NAME = Point
const i32 UNKNOWN = Nothing
const i32 UNKNOWN_FILE = nothing.Nothing
const string FROM_NUMBER = I64_FINE
const i32 FROM_LARGE = I64_FINE
const list<i64> FROM_LIST = LIST_ELEMENTS
const i32 FROM_LIST_TO_NUMBER = LIST_ELEMENTS
struct Defaults {
  1: i8 large = 1000
  2: Status status = Status.LOST
  3: list<Point> points = [{"x": 1}, {"y": 1}]
}
service Arguments { void m(1: i8 large = 1000) }
const list<i32> EMPTY_LIST = {}
const set<i32> EMPTY_SET = {}
const map<i32, i32> EMPTY_MAP = []
const Point EMPTY_STRUCT = []
const Status BARE = OLD
const Status OF_ANOTHER = Other.NEW
const Status NOWHERE = values.NEW
const i32 BARE_NUMBER = OLD
const list<Status> BARE_IN_LIST = [OLD, LOST]
struct Preset { 1: i32 d = 3, 2: string text, 3: optional i32 maybe = 3, 4: Inside inside = {"on": true, "n": 1}, 5: Inside other }
struct Inside { 1: bool on, 2: i32 n, 3: list<Preset> deep }
const map<Preset, i32> KEY_PRESET = {{}: 1, {"d": 3}: 2}
const map<Preset, i32> KEY_ZERO = {{"text": "", "d": 4}: 1, {"d": 4}: 2}
const map<Preset, i32> KEY_ORDER = {{"d": 1, "text": "x"}: 1, {"text": "x", "d": 1}: 2}
const map<Preset, i32> KEY_NESTED = {{"inside": {"n": 1, "on": true, "deep": []}}: 1, {"d": 3}: 2}
const map<Preset, i32> KEY_OTHERS = {{}: 1, {"maybe": 3}: 2, {"d": 0}: 3, {"inside": {}}: 4, {"other": {"n": 1}}: 5}
const map<list<Preset>, i32> KEY_LISTS = {[{}]: 1, [{"d": 3}]: 2, [{}, {}]: 3}
const set<Preset> SET_PRESET = [{}, {"d": 3}, {"d": 4}]
