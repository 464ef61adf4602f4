/** What everything.thrift includes: types of another file and a service to extend. */
namespace go base
namespace py base

/** A number that two files use. */
typedef i64 Moment

/** How urgent something is. Peers may send numbers that have no name here. */
enum Level {
  LOW = 1
  MIDDLE = 5
  HIGH = 10
}

/** Fixed in other languages too, so that it can be a key there. */
struct Point {
  1: i32 x
  2: i32 y
} (python.immutable = "")

/** What was asked for is not there. */
exception NotFound {
  1: required string what
  2: optional Moment since
}

service Base {
  void ping()

  /** Returns "base of everything", which only a service that inherits this can say. */
  string describe()

  /** Returns moment with the decimal digits of level behind it: 12 and HIGH make 1210. */
  Moment stamp(1: Moment moment, 2: Level level)
}
