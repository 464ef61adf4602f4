// What Kitex's tool embeds with the option enable_nested_struct. Generated with
// --shape=kitex --kitex-nested.
namespace go outer

include "inner.thrift"

struct Size {
  1: i32 width = 3
  2: optional i32 height
}

typedef Size Format

struct Request {
  255: inner.Base base (thrift.nested = "true")
  1: i64 id
  2: Size size_of_it (thrift.nested = "True")
  3: optional inner.Origin keyed (thrift.nested = "true")
  4: required Point place (thrift.nested = "true")
  5: optional Size plain (thrift.nested = "false")
}

struct Point {
  1: i32 x
  2: i32 y
}

struct Aliased {
  1: optional Format format = {"width": 7} (thrift.nested = "true", go.tag = 'db:"format"')
}

struct Chain {
  1: optional Chain chain (thrift.nested = "true")
  2: i32 depth
}

union Either {
  1: Point point (thrift.nested = "true")
  2: i32 number
}

exception Failed {
  1: Size size (thrift.nested = "true")
  2: i32 code
}

struct Reply {
  1: list<Request> requests
  2: Failed failed (thrift.nested = "true")
}

service Nested {
  Reply call(1: Request request) throws (1: Failed failed)
}
