// What views are of. Generated with --views.
namespace go views

include "other.thrift"

enum Color {
  RED = 1
  BLUE = 2
}

typedef list<Leaf> Leaves
typedef i64 Stamp

struct Leaf {
  1: i32 number
  2: optional string text
}

/** Every kind of field, each once with and once without a default. */
struct Plain {
  1: bool aBool
  2: i8 anI8
  3: i16 anI16
  4: i32 anI32
  5: i64 anI64
  6: double aDouble
  7: string aString
  8: binary aBinary
  9: uuid aUuid
  10: Color aColor
  11: Leaf aLeaf
  12: list<i64> numbers
  14: Stamp stamp
}

struct Preset {
  1: bool aBool = true
  2: i8 anI8 = -3
  3: i16 anI16 = 300
  4: i32 anI32 = -70000
  5: i64 anI64 = 5000000000
  6: double aDouble = 2.5
  7: string aString = "text"
  8: binary aBinary = "bytes"
  9: uuid aUuid = "00112233-4455-6677-8899-aabbccddeeff"
  10: Color aColor = Color.BLUE
  11: Leaf aLeaf = {"number": 7}
  12: list<i64> numbers = [1, 2, 3]
  13: map<string, list<i32>> groups = {"a": [1], "b": []}
  14: set<string> names = ["x", "y"]
  15: optional i32 size = 9
  16: optional list<string> tags = ["t"]
  17: optional Leaf other = {"number": 8, "text": "t"}
  18: optional binary blob = "b"
}

struct Optional {
  1: optional bool aBool
  2: optional i8 anI8
  3: optional i16 anI16
  4: optional i32 anI32
  5: optional i64 anI64
  6: optional double aDouble
  7: optional string aString
  8: optional binary aBinary
  9: optional uuid aUuid
  10: optional Color aColor
  11: optional Leaf aLeaf
  12: optional list<i64> numbers
  13: optional map<string, Leaf> leaves
  14: optional Choice choice
  15: optional Failure failure
}

/** Ids are neither in order nor next to each other. */
struct Strict {
  300: required string name
  7: required list<i32> numbers
  -2: required Leaf leaf
  20000: required map<i32, Leaf> leaves
  5: optional Strict inner
  6: list<Strict> children
}

union Choice {
  1: i64 number
  2: string text
  3: list<i32> numbers
  4: Leaf leaf
  5: Strict strict
}

exception Failure {
  1: i32 code
  2: optional Failure cause
}

struct Containers {
  1: list<bool> bools
  2: list<i8> bytes
  3: list<i16> shorts
  4: list<i32> ints
  5: list<i64> longs
  6: list<double> doubles
  7: list<string> strings
  8: set<binary> binaries
  9: list<uuid> uuids
  10: set<Color> colors
  11: Leaves leaves
  12: list<Choice> choices
  13: list<list<list<i64>>> cube
  14: list<map<string, list<Leaf>>> mixed
  15: map<i16, map<i64, set<double>>> maps
  16: map<binary, Leaf> byBinary
  17: map<Leaf, i32> byLeaf
  18: map<list<i32>, Strict> byList
  19: map<bool, Color> byBool
  20: map<Strict, Strict> byStrict
  21: list<Node> nodes
  22: map<string, string> texts
}

struct Node {
  1: i32 value
  2: optional Node next
  3: list<Node> children
  4: map<string, Node> named
  5: other.Place place
  6: list<other.Place> places
}

/** Names that views need themselves, and that their methods would have. */
struct Names {
  1: i32 load
  2: i32 note
  3: i32 hasNote
  4: i32 setNote
  5: list<i32> view
  6: list<i32> slots
  7: i32 struct
  8: i32 viewAt
  9: optional string string
  10: i32 v
  11: map<i32, i32> b
  12: Names_View namesView
}
struct Names_View { 1: i32 value }
struct NamesView { 1: i32 value }

/** Of what did not come, containers and binaries are nil, at any level. */
struct Inside {
  1: list<i32> numbers
  2: binary blob
  3: map<string, i32> counts
  4: string text
}

struct Around {
  1: Inside inside
  2: i32 number
  3: list<Inside> list = [{"text": "x"}]
  4: Inside preset = {"text": "p"}
  5: Choice choice
  6: i64 size = 3
  7: map<string, i32> counts = {"a": 1}
  8: map<string, Leaf> leaves = {"a": {"number": 1}}
}

struct Holder { 1: list<Around> list }

struct Empty {}

struct Typed {
  1: i64 wait (go.type = "time.Duration")
  2: optional i64 pause = 5 (go.type = "time.Duration")
  3: binary raw (go.type = "crypto/ed25519.PublicKey")
}

struct Octets {
  1: list<i8> plain (go.type = "[]byte")
  2: optional set<i8> maybe (go.type = "[]byte")
  3: list<i8> preset = [1, -1] (go.type = "[]byte")
  4: optional list<i8> later = [-128] (go.type = "[]byte")
  5: required list<i8> must (go.type = "[]byte")
  6: optional Digest digest
}

union Digest {
  1: list<i8> sum (go.type = "[]byte")
  2: i64 number
}
