-- main.thrift --
include "other.thrift"
struct Customer { 1: i32 n }
enum Status { NEW = 1, PAID = 2, SHIPPED = 3, LOST = 4, RETURNED = 5, GONE = 6 }
enum None {}
const i32 Costumers = 1
struct S {
  1: Custmer a
  2: customer b
  3: Entirely c
  4: other.Mony d
  5: C e
  6: Costumers f
}
const Status A = Status.PAYD
const Status B = Status.paid
const Status C = Status.UNKNOWN
const None D = None.X
-- other.thrift --
struct Money { 1: i64 cents }
