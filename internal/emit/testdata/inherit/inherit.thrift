namespace go inherit

include "base.thrift"
include "deep/other.thrift"
include "value.thrift"

/** Does what Base does, and more. */
service Child extends base.Middle {
  value.Value combine(1: value.Value value, 2: base.Common common, 3: value.Kind kind = value.Kind.B) throws (1: base.Gone gone)
  base.Commons all(1: map<string, value.Value> value)
}

/** Adds nothing. */
service Grandchild extends Child {}

struct Mixed {
  1: base.Common common
  2: value.Value v
  3: map<string, list<value.Value>> value2
  4: optional value.Kind kind = value.Kind.A
  5: i32 limit = base.LIMIT
  6: map<value.Key, base.Common> keyed
  8: other.Deep deep
  7: base.Wrapped wrapped = {"inner": {"n": 3}, "level": 2}
}
