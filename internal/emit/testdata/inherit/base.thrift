namespace go inherit.thrift

include "value.thrift"

const i32 LIMIT = 10

struct Common { 1: i32 id = LIMIT }
typedef list<Common> Commons
exception Gone { 1: string what }
struct Wrapped { 1: value.Inner inner, 2: value.Level level = value.Level.HIGH }

service Base {
  void ping()
  Common get(1: i32 id) throws (1: Gone gone)
}
service Middle extends Base {
  oneway void touch(1: Common common)
}
