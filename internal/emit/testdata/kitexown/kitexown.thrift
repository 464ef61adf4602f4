// What only fulmar gen has in the shape of Kitex: types that the tool of Kitex does
// not know, or writes Go for that does not compile.
namespace go own

struct Key {
  1: list<i32> path
}

struct Inner {
  1: i32 number = 4
}

struct Own {
  1: uuid id
  2: optional uuid other
  3: list<uuid> all
  4: map<list<i32>, Inner> by_path
  5: map<map<string, Inner>, list<Inner>> nested
  6: map<Key, Inner> by_key
  7: map<uuid, Key> by_id
  8: optional uuid preset = "00112233-4455-6677-8899-aabbccddeeff"
  9: map<list<Inner>, double> weights
  10: map<Key, list<map<Key, Inner>>> deep
}

union OneOf {
  1: uuid id
  2: map<list<i32>, Inner> table
  3: Own own
}

// Names of what there is beside those of Kitex.
struct Taken {
  1: i32 b_length
  2: i32 FastRead
  3: i32 fast_write
  4: i32 WriteThrift
  5: i32 init_default
  6: optional string String
}

struct Keeps {
  1: i32 number
  2: list<i32> numbers
} (go.unknown = "keep")

union KeepsArm {
  1: i32 number
} (go.unknown = "keep")

union KeepsPreset {
  1: i32 number
  2: binary bytes = "bin"
} (go.unknown = "keep")

// More than 64 bytes in Go, also where pointers have 4, for one on the wire.
struct Wide {
  1: optional i32 number1
  2: optional i32 number2
  3: optional i32 number3
  4: optional i32 number4
  5: optional i32 number5
  6: optional i32 number6
  7: optional i32 number7
  8: optional i32 number8
  9: optional i32 number9
  10: optional i32 number10
  11: optional i32 number11
  12: optional i32 number12
  13: optional i32 number13
  14: optional i32 number14
  15: optional i32 number15
  16: optional i32 number16
  17: optional i32 number17
  18: optional i32 number18
  19: optional i32 number19
  20: optional i32 number20
}

struct Wides {
  1: list<Wide> list
}

// A default that gives none of the fields has none of theirs in it.
struct Heavy {
  1: list<i64> numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]
}

struct Item {
  1: i32 id
  2: Heavy heavy = {}
}

struct Filled {
  1: i32 id
  2: Heavy heavy = {"numbers": [1, 2, 3, 4]}
  3: list<Inner> inner = [{}, {"number": 5}]
  4: map<string, Inner> named = {"a": {}}
}

// Names that begin with underscores, which Kitex's tool does not export.
struct Hidden {
  1: i32 _1
  2: optional string _name = "n"
  3: i32 X_name
  4: i32 __x
}

struct Items {
  1: list<Item> items
  2: list<Filled> filled
}

struct Sets {
  1: set<string> texts (go.set = "unique")
  2: set<Inner> inner (go.set = "unique")
  3: optional set<double> doubles (go.set = "unique")
  4: list<set<i32>> many (go.set = "unique")
  5: required set<binary> blobs (go.set = "unique")
}
