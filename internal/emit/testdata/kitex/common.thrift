// What kitex.thrift includes.
namespace go common

typedef i64 Stamp
typedef Point Spot

enum Level {
  LOW = 1
  HIGH = 2
}

struct Point {
  1: i32 x
  2: i32 y = 7
}

const Level USUAL = Level.HIGH
const i32 BASE = 40

exception Broken {
  1: required string why
  2: optional i32 code = 3
}

service Health {
  bool alive()
}
