# load: main.thrift -I vendor
-- main.thrift --
include "common.thrift"
include "sub/common.thrift"
include "far.thrift"
struct S {
  1: common.OnlyFirst a
  2: common.OnlySecond b
  3: common.Both c
  4: common.Neither d
  5: far.Far e
  6: Far notQualified
  7: indirect.Type notIncluded
  8: i32 constant = common.BOTH
  9: far.Status status = far.Status.LOST
}
-- common.thrift --
namespace go one
struct OnlyFirst {}
struct Both {}
const i32 BOTH = 1
-- sub/common.thrift --
namespace go two
struct OnlySecond {}
struct Both {}
const i32 BOTH = 2
-- vendor/far.thrift --
include "indirect.thrift"
struct Far {}
enum Status { A }
-- vendor/indirect.thrift --
struct Type {}
