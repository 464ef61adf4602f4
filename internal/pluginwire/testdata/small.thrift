/** A small model with one of each kind. */
namespace go small

/** How far. */
enum State { OPEN = 1 (note), CLOSED = -3 }

typedef list<Order> Orders

const i64 LIMIT = 9007199254740993
const State FIRST = State.CLOSED
const binary RAW = "\xff\xfe"
const Order EMPTY = {"id": LIMIT, "rates": {"a": 1.5}}

/** An order. */
struct Order {
  1: required i64 id (db.column = "order_id")
  2: optional State state = State.OPEN
  3: map<string, double> rates
  4: optional Orders children
}

union Payment { 1: i64 card, 2: string voucher }

exception Gone { 1: string what }

service Base { void ping() }

service Shop extends Base {
  Orders find(1: State state) throws (1: Gone gone)
  oneway void viewed(1: i64 id)
}
