// Structs whose defaults take more memory than a short message may.
namespace go deep

/** Each of those that follow has nine of the one before in its defaults. */
struct Deep0 {
  1: list<i64> numbers = [1, 2, 3, 4]
}

struct Deep1 {
  1: list<Deep0> list = [{}, {}, {}, {}, {}, {}, {}, {}]
  2: Deep0 one
}

struct Deep2 {
  1: list<Deep1> list = [{}, {}, {}, {}, {}, {}, {}, {}]
  2: Deep1 one
}

struct Deep3 {
  1: list<Deep2> list = [{}, {}, {}, {}, {}, {}, {}, {}]
  2: Deep2 one
}

struct Deep4 {
  1: list<Deep3> list = [{}, {}, {}, {}, {}, {}, {}, {}]
  2: Deep3 one
}

/** Has all places where a struct can be. */
struct Places {
  1: Deep4 one
  2: optional Deep4 maybe
  3: list<Deep4> list
  4: map<i32, Deep4> byNumber
  5: map<list<i32>, Deep4> pairs
  6: map<Deep4, i32> keys
}

union Choice {
  1: Deep4 deep
}

exception Failure {
  1: Deep4 deep
}

service Finder {
  Deep4 find(1: Deep4 deep, 2: i32 number) throws (1: Failure failure)
}
