// What unknown.thrift has become.
namespace go unknown.newer

struct Point {
  1: i32 x
  2: i32 y
  3: optional i32 z
} (go.unknown = "keep")

union Choice {
  1: i32 number
  2: string text
  3: list<string> texts
  4: Point point
  5: map<string, list<i64>> table
} (go.unknown = "keep")

exception Refused {
  1: string reason
  2: optional i32 code
  3: optional Point place
}

struct Nothing {
  1: optional string something
}

struct Label {
  1: string key
  2: optional list<Label> labels
}

struct Message {
  0: optional bool zeroth
  1: required i64 id
  2: optional i16 before
  3: optional Point centre
  4: optional string note
  5: Point point
  6: list<Point> path
  7: map<string, Choice> choices
  8: map<Point, string> named
  9: optional list<Label> labels
  10: optional Message inner
  11: optional Choice choice
  12: binary blob
  13: optional string last
  14: list<i32> unknown_fields
  15: optional uuid key
}
