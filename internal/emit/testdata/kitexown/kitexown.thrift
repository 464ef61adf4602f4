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
