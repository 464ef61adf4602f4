// Fields with thrift.nested, which are embedded in Go. Kitex's tool embeds as well.
namespace go nested

include "common.thrift"

struct Size {
  1: i32 width = 3
  2: i32 height
  3: list<i32> depths = [1, 2]
}

typedef Size Format

struct Request {
  /** Who calls. */
  255: common.Base base (thrift.nested = "true")
  1: i64 id
  2: Size size (thrift.nested = "TRUE")
  3: optional common.Keyed keyed (thrift.nested = "true")
  4: required Point place (thrift.nested)
  5: optional Size plain (thrift.nested = "false")
}

struct Point {
  1: i32 x
  2: i32 y
}

/** All of it is in what is embedded. */
struct Wrapped {
  1: Point point (thrift.nested = "true")
}

/** By other names, and with tags. */
struct Aliased {
  1: common.Origin origin (thrift.nested = "true", go.tag = 'json:"from" db:"origin"')
  2: optional Format format = {"width": 7} (thrift.nested = "true")
}

/** Contains itself. */
struct Chain {
  1: Chain chain (thrift.nested = "true")
  2: i32 depth
}

struct Left {
  1: optional Right right (thrift.nested = "true")
  2: string name
}

struct Right {
  1: Left left (thrift.nested = "true")
  2: string title
}

union Either {
  1: Point point (thrift.nested = "true")
  2: Wrapped wrapped (thrift.nested = "true")
  3: i32 number
}

struct Holder {
  1: Either either (thrift.nested = "true")
  2: list<Request> requests
  3: map<string, Aliased> aliased
}

exception Failed {
  1: Cause cause (thrift.nested = "true")
  2: i32 code
}

exception Cause {
  1: string text
}

/** As views have it. */
struct Seen {
  1: Point point (thrift.nested = "true")
  2: optional common.Base base (thrift.nested = "true")
} (go.view)

const Request REQUEST = {"base": {"caller": "me"}, "place": {"x": 1}, "id": 2}
