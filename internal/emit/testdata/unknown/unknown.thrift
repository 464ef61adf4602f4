// What an older definition knows of newer.thrift, and keeps of the rest.
namespace go unknown

include "newer.thrift"

struct Point {
  1: i32 x
  2: i32 y
} (go.unknown = "keep")

union Choice {
  1: i32 number
  2: string text
  3: list<string> texts
} (go.unknown = "keep")

exception Refused {
  1: string reason
} (go.unknown = "keep")

struct Nothing {} (go.unknown = "keep")

struct Message {
  1: required i64 id
  4: optional string note
  5: Point point
  6: list<Point> path
  7: map<string, Choice> choices
  8: map<Point, string> named
  10: optional Message inner
  11: optional Choice choice
  12: binary blob (go.strings = "own")
  14: list<i32> unknown_fields
} (go.unknown = "keep")

struct Dropped {
  1: i64 id
}

struct Holder {
  1: Message message
  2: Dropped dropped
}

service Relay {
  Message relay(1: Message message) throws (1: Refused refused)
}
